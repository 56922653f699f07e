"""Records the programs with `memfit run`, and reads what was recorded as runs with a truth."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tempfile
from bisect import bisect_right
from pathlib import Path

from benchmarks.forecast.programs import PROGRAMS
from benchmarks.forecast.runs import Run
from memfit.measure.record.recording_reader import load
from memfit.model import Member, Reading

RESULTS = Path(__file__).parent / "results"
_FIELDS = ("seconds", "bytes", "processes", "threads", "filling", "room", "files")


def record(name: str) -> None:
    """Run one program under `memfit run`, and keep its readings beside its own log."""
    with tempfile.TemporaryDirectory() as folder:
        database, log = Path(folder) / "run.db", Path(folder) / "log"
        program = [sys.executable, "-m", "benchmarks.forecast.programs", name, str(log)]
        command = [sys.executable, "-m", "memfit", "run", "-q", "-o", str(database)]
        options = PROGRAMS[name].options
        done = subprocess.run([*command, *options, "--", *program], check=False, timeout=600)
        if done.returncode and not options:
            raise SystemExit(f"{name} ended with exit code {done.returncode}")
        trace = load(database)
        told = [line.split() for line in log.read_text().splitlines()]
    grown = [(round(float(at) - trace.started, 3), int(amount)) for at, amount in told]
    kept = {
        "readings": [[getattr(r, field) for field in _FIELDS] for r in trace.readings],
        "members": [
            [m.pid, m.name, [[r.seconds, r.bytes] for r in m.readings]] for m in trace.members
        ],
        "grown": grown,
    }
    RESULTS.mkdir(exist_ok=True)
    _file(name).write_bytes(gzip.compress(json.dumps(kept).encode(), mtime=0))


def recorded(name: str) -> Run:
    """What was recorded of a program."""
    kept = json.loads(gzip.decompress(_file(name).read_bytes()))
    readings = [Reading(**dict(zip(_FIELDS, row, strict=True))) for row in kept["readings"]]
    times = [at for at, _ in kept["grown"]]
    amounts = [0, *(amount for _, amount in kept["grown"])]
    return Run(
        kind=name,
        truth=PROGRAMS[name].truth,
        readings=readings,
        grown=[amounts[bisect_right(times, r.seconds)] for r in readings],
        members=tuple(
            Member(
                pid=pid,
                name=command,
                readings=tuple(Reading(seconds=at, bytes=amount) for at, amount in series),
            )
            for pid, command, series in kept["members"]
        ),
    )


def _file(name: str) -> Path:
    return RESULTS / f"{name.replace(' ', '_')}.json.gz"
