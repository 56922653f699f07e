"""What memfit says of each case, beside what the kernel counts in a run without memfit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

import memfit
from benchmarks.leaks.cases import TARGET, Case

FRAMES = 1000


def verdict_of(case: Case) -> dict[str, Any]:
    """The profile of a case, in the fields that are counted."""
    begun = time.monotonic()
    found: dict[str, Any] = {"family": case.family, "seed": case.seed, "leaks": case.leaks}
    try:
        seen = memfit.profile(
            TARGET,
            frames=FRAMES,
            envs=1,
            observe=False,
            seed=case.seed,
            options={"family": case.family, "seed": case.seed},
        )
    except memfit.MemfitError as error:
        return {**found, "verdict": "failed", "why": f"{error} {error.output[-300:]}"}
    return {
        **found,
        "verdict": seen.verdict.value,
        "why": seen.judgement.why,
        "kind": seen.kind.value if seen.kind else "",
        "bytes_per_frame": seen.judgement.bytes_per_frame,
        "bytes_per_episode": seen.judgement.bytes_per_episode,
        "frames": seen.frames,
        "episodes": seen.episodes,
        "holders": [holder.path for holder in seen.holders[:3]],
        "holder": case.holder() if case.leaks else "",
        "seconds": round(time.monotonic() - begun, 2),
    }


def truth_of(case: Case, seconds: float = 12.0, *, imports: int = 0) -> dict[str, Any]:
    """What the kernel counts for a frame and an episode in a run of its own, without memfit.

    So many `imports` come before, as a program might have them.
    """
    words = [sys.executable, "-m", "benchmarks.leaks.bare", case.family, str(case.seed)]
    words += [str(seconds), str(imports)]
    alone = {**os.environ, "OMP_NUM_THREADS": "1"}  # threads of torch only wait for each other
    done = subprocess.run(
        words, check=False, capture_output=True, text=True, timeout=180, env=alone
    )
    if done.returncode:
        return {"failed": done.stderr[-500:]}
    found: dict[str, Any] = json.loads(done.stdout)
    return found
