"""Explain one training with the inside view so many times: `python -m benchmarks.harm.looking`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.harm.scene import PROGRAM, alone
from tests.harm.training import CODE

import memfit

SECONDS = 2400.0
SAID = 25  # explanations, after which it says how far it is
EVERY = 10  # explanations, of which one also follows pointers of C and C++


def looked_at(kind: str, count: int) -> dict[str, Any]:
    """How a training ends that is asked so often."""
    without = alone(kind, "-")
    found: dict[str, Any] = {"kind": kind, "asked": 0, "told": 0, "refused": 0}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        command = [sys.executable, "-m", "memfit", "run", "-q", "--no-file", "--"]
        command += [sys.executable, PROGRAM, place, kind, "-", "run"]
        with subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"}) as process:
            while not (folder / "ready").exists() and process.poll() is None:
                time.sleep(0.05)
            pid = int((folder / "ready").read_text())
            until = time.monotonic() + SECONDS
            try:
                while found["told"] < count and time.monotonic() < until:
                    if process.poll() is not None:
                        break
                    _look(pid, found)
            finally:
                (folder / "end").touch()
            code = process.wait(SECONDS)
        said = json.loads((folder / "said").read_text())
    same = said["digests"] == without["digests"] and len(said["digests"]) == 1
    return {**found, "code": code, "died": code != CODE, "same": same, "cycles": said["cycles"]}


def _look(pid: int, found: dict[str, Any]) -> None:
    found["asked"] += 1
    try:
        view = memfit.explain(pid, native=found["asked"] % EVERY == 0)
        found["told"] += view.inside is not None
    except memfit.MemfitError:
        found["refused"] += 1
    if found["asked"] % SAID == 0:
        print(found, file=sys.stderr, flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    print(json.dumps(looked_at(sys.argv[1], int(sys.argv[2]))))
