"""Command line of the benchmark: ``python -m benchmarks.speed STAGE``.

Stages: rollout, ppo, replay, workers, microbatch, then table, which writes README.md from what the
others found. `all` does one after another; `--small` tries everything out within a few minutes and
keeps nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def _rollout(small: bool) -> Any:
    from benchmarks.speed.rollout import measure

    return measure(small=small)


def _ppo(small: bool) -> Any:
    from benchmarks.speed.ppo_peak import measure

    return measure(small=small)


def _replay(small: bool) -> Any:
    from benchmarks.speed.replay import measure

    return measure(small=small)


def _workers(small: bool) -> Any:
    from benchmarks.speed.workers import measure

    return measure(small=small)


def _microbatch(small: bool) -> Any:
    from benchmarks.speed.microbatch import measure

    return measure(small=small)


STAGES: dict[str, Callable[[bool], Any]] = {
    "rollout": _rollout,
    "ppo": _ppo,
    "replay": _replay,
    "workers": _workers,
    "microbatch": _microbatch,
}


def main(words: list[str]) -> int:
    """Run a stage and keep what it found."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    parser.add_argument("stage", choices=[*STAGES, "table", "all"])
    parser.add_argument("--small", action="store_true", help="try it out; keep no results")
    given = parser.parse_args(words)
    for name in STAGES if given.stage == "all" else [given.stage]:
        if name == "table":
            continue
        busy = os.getloadavg()[0]
        found = {"load_before": round(busy, 2), **STAGES[name](given.small)}
        found["load_after"] = round(os.getloadavg()[0], 2)
        text = json.dumps(found, indent=1)
        if given.small:
            print(text)
        else:
            RESULTS.mkdir(exist_ok=True)
            (RESULTS / f"{name}.json").write_text(text + "\n")
    if given.stage in ("table", "all") and not given.small:
        from benchmarks.speed.table import write

        write(RESULTS, Path(__file__).parent / "README.md")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
