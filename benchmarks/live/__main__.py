"""Command line of the benchmark: ``python -m benchmarks.live STAGE``.

Each stage runs some programs under `memfit run`, asks them again and again, and ends them.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.truth import kernel

from benchmarks.explain.__main__ import SYSTEMS
from benchmarks.live import table
from benchmarks.live.programs import LARGE, PROGRAMS
from benchmarks.stages import keep, run_stage, say
from memfit.api.compare import recorded
from memfit.measure.kernel import proc

HERE = Path(__file__).parent
RESULTS = HERE / "results"
MEMFIT = [sys.executable, "-m", "memfit"]
UNTIL_IT_LEARNS, LARGE_SECONDS = 20.0, 40.0
PAIRS, LONGEST = 4, 120.0  # of asked and unasked times; seconds that an answer may take
NEVER = ("--trials", "0", "--never-done", "--workers", "0", "--width", "256", "--limit", "12GiB")
GROWS = {  # what is to be told to grow, by program; the others are no leaks
    "trader that never says done": "trajectory",
    "a leaking worker of four": "kept",
}
Pace = Callable[[], float]


def systems() -> None:
    """The reference systems, as described and made to fit."""
    found = []
    for name, options in SYSTEMS.items():
        for way in ((), ("--as-described",)):
            words = ["-m", f"memfit.systems.{name}", "--quiet", *options, *way]
            found.append(asked(f"{name}, {'as described' if way else 'made to fit'}", words))
            keep(RESULTS, "systems", found)


def never() -> None:
    """The trader as described, with a rollout that never ends."""
    words = ["-m", "memfit.systems.trader", "--quiet", "--as-described", *NEVER]
    keep(RESULTS, "never", [asked("trader that never says done", words)])


def programs() -> None:
    """Programs of other kinds, which count what they do."""
    _programs("programs", [name for name in PROGRAMS if name != LARGE], UNTIL_IT_LEARNS)


def large() -> None:
    """The largest, which needs nearly all memory of the machine."""
    _programs("large", [LARGE], LARGE_SECONDS)


def _programs(stage: str, names: Sequence[str], wait: float) -> None:
    found = []
    for name in names:
        words = ["-m", "benchmarks.live.programs", name]
        found.append(asked(name, words, counted=True, wait=wait))
        keep(RESULTS, stage, found)


def asked(
    name: str, words: Sequence[str], *, counted: bool = False, wait: float = UNTIL_IT_LEARNS
) -> dict[str, Any]:
    """One program, asked in turns with times in which it is left alone."""
    say(name)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        counter, recording = folder / "counter", folder / "run.db"
        counter.write_bytes(bytes(8))
        command = [*MEMFIT, "run", "-q", "-o", str(recording), "--", sys.executable, *words]
        command += [str(counter)] if counted else []
        environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1])}
        log = (folder / "out").open("w")
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, env=environment)
        try:
            time.sleep(wait)
            pid = kernel.recorded(process.pid)
            pace = _counted(counter) if counted else _worked(pid)
            _until_it_works(pace)
            answers, paces = [], {"asked": [0.0, 0.0], "alone": [0.0, 0.0]}
            for _ in range(PAIRS):
                lasts = _timed(paces["asked"], pace, lambda: answers.append(_answer(pid)))
                _timed(paces["alone"], pace, lambda lasts=lasts: time.sleep(lasts))
            outside = _answer(pid, "--no-inside")
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            log.close()
        trace, forecast = recorded(str(recording))
    folder = Path(sys.executable).parent
    by_pace = {key: work / max(0.001, seconds) for key, (work, seconds) in paces.items()}
    return {
        "name": name,
        "load": os.getloadavg()[0],
        "counted": counted,
        "outside": outside,
        "answers": answers,
        "slowdown": 1 - by_pace["asked"] / by_pace["alone"] if by_pace["alone"] else None,
        "growth": str(forecast.growth),
        "members": [
            m.replace(str(Path(sys.executable).parent) + "/", "") for m in forecast.members
        ],
        "should_grow": GROWS.get(name, ""),
        "seconds": trace.seconds,
    }


def _answer(pid: int, *options: str) -> dict[str, Any]:
    """An answer of the command line, with the time that it took to be there."""
    command = [*MEMFIT, "explain", str(pid), "--format", "json", "-q", *options]
    started = time.monotonic()
    why = f"nothing within {LONGEST:.0f} s"
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, check=False)
        why = done.stderr[-500:]
        found = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError):
        return {"seconds": time.monotonic() - started, "answered": False, "why": why}
    inside = found.get("inside") or {}
    return {
        "seconds": time.monotonic() - started,
        "answered": True,
        "pss_bytes": found["pss_bytes"],
        "named_share": found["named_share"],
        "held_share": inside.get("held_share", 0.0),
        "holders": [[h["path"], h["bytes"]] for h in inside.get("holders", [])[:4]],
        "notes": found.get("notes", []),
    }


def _timed(into: list[float], pace: Pace, work: Callable[[], object]) -> float:
    """Add what was done meanwhile, and how long that took."""
    begin, started = pace(), time.monotonic()
    work()
    lasted = time.monotonic() - started
    into[0] += pace() - begin
    into[1] += lasted
    return lasted


def _until_it_works(pace: Pace) -> None:
    """Importing may take longer than usual, on a machine that others use."""
    end = time.monotonic() + LONGEST
    while not pace() and time.monotonic() < end:
        time.sleep(1)


def _counted(counter: Path) -> Pace:
    return lambda: float(struct.unpack("<Q", counter.read_bytes())[0])


def _worked(pid: int) -> Pace:
    """Seconds of the processor that a tree has had."""

    def seconds() -> float:
        total = 0.0
        for member in [pid, *proc.descendants(pid)]:
            with suppress(OSError):
                words = proc.stat(member)
                total += sum(map(int, words[11:13])) / os.sysconf("SC_CLK_TCK")
        return total

    return seconds


STAGES = {
    "systems": systems,
    "never": never,
    "programs": programs,
    "large": large,
    "table": lambda: table.write(RESULTS, HERE / "README.md"),
}


def main() -> None:
    """Run one stage."""
    run_stage("live", __doc__, STAGES)


if __name__ == "__main__":
    main()
