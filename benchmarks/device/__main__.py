"""Command line of the benchmark: ``python -m benchmarks.device``: predicts, and writes its table.

One run at a time, each in a process of its own (``python -m benchmarks.device NUMBER``); with
``--continue`` those that have no result yet.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.device.published import Run, published, snapshots
from benchmarks.device.table import write

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
PACKAGES = HERE.parents[1] / ".rivals"
_MOST_SECONDS = 120
SEED = 22


def main(words: list[str]) -> int:
    # In an order of chance, so that a part of them is a sample of all.
    runs = [*snapshots(), *Random(SEED).sample(found := list(published()), len(found))]
    if not runs:
        print("needs ../shared/data/device beside the project: published runs and snapshots")
        return 2
    if words and words[0].isdecimal():
        print(json.dumps(_predict(runs[int(words[0])])))
        return 0
    again = RESULTS.is_file() and "--continue" in words
    done: dict[str, Any] = json.loads(RESULTS.read_text()) if again else {}
    for number, run in enumerate(runs):
        if "reserved" in done.get(run.name, {}):
            continue
        done[run.name] = {**run.facts, **_in_process(number)}
        print(run.name, done[run.name], flush=True)
        RESULTS.write_text(json.dumps(done, indent=1) + "\n")
        write(done, HERE / "README.md", of=len(runs))
    return 0


def _predict(run: Run) -> dict[str, Any]:
    import resource
    import time

    sys.path.append(str(PACKAGES))
    started = time.monotonic()
    found = run.predict()
    return {
        "allocated": found.allocated,
        "reserved": found.reserved,
        "fits": found.fits,
        "seconds": round(time.monotonic() - started, 1),
        "held": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def _in_process(number: int) -> dict[str, Any]:
    """What one process says; nothing where it failed, which counts as a miss."""
    command = [sys.executable, "-m", "benchmarks.device", str(number)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_MOST_SECONDS, check=True
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        return {"failed": str(error.stderr or error)[-300:]}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
