"""Command line of the benchmark: ``python -m benchmarks.record STAGE``."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from bisect import bisect_right
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import psutil

import memfit
from benchmarks.record import table
from benchmarks.stages import keep, run_stage, say
from memfit.measure.record.recording_reader import load

HERE = Path(__file__).parent
RESULTS = HERE / "results"
SECONDS, START_SECONDS, TURN = 100, 10, 0.7
PROGRAMS = {  # envs, workers, MiB held beside
    "PPO, one env": (1, 0, 0),
    "PPO, one env, 4 GiB held": (1, 0, 4096),
    "PPO, 4 subprocess workers": (4, 4, 0),
}
MOMENTS, EARLY, SEED = 200, 40, 7
GUARDED, TIMES = 2 * 2**30, 8
WHO = ("recorder", "target", "both")
RUN = [sys.executable, "-m", "memfit", "run", "-q"]
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}
GROW = "import time\nk = []\nwhile True:\n    k.append(bytearray(2**20))\n    time.sleep(.01)"


def cost() -> None:
    """Iterations of one training while its recorder runs and while it is held, in turns."""
    found: dict[str, Any] = {}
    for name, options in PROGRAMS.items():
        for recording in (True, False):  # without: what the same comparison finds where nothing is
            say(f"{name}, {'recorded in turns' if recording else 'never recorded'}")
            way = "recorded" if recording else "noise"
            found.setdefault(name, {})[way] = _in_turns(options, recording=recording)
            keep(RESULTS, "cost", found)


def _in_turns(options: Sequence[int], *, recording: bool) -> list[tuple[float, int]]:
    """Median seconds of an iteration, and how many, by turns; it is recorded in every other."""
    words = [str(word) for word in (SECONDS, *options)]
    with tempfile.TemporaryDirectory() as folder:
        command = [*RUN, "-o", f"{folder}/run.db", "--limit", "16GiB", "--", sys.executable]
        command += [str(HERE / "training.py"), *words]
        recorder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ONE_THREAD)
        turns: list[float] = []
        out: list[str] = []
        reader = threading.Thread(target=lambda: out.append(recorder.stdout.read()))  # type: ignore[union-attr]
        reader.start()
        time.sleep(START_SECONDS)
        held = not recording
        recorder.send_signal(signal.SIGSTOP)
        end = time.monotonic() + SECONDS - START_SECONDS
        while time.monotonic() < end:
            if recording:
                recorder.send_signal(signal.SIGSTOP if held else signal.SIGCONT)
            held = not held
            turns.append(time.monotonic())
            time.sleep(TURN)
        recorder.send_signal(signal.SIGCONT)
        recorder.wait(120)
        reader.join()
    began = json.loads(out[0].rpartition("]")[0] + "]")
    found: list[list[float]] = [[] for _ in turns]
    for one, other in pairwise(began):
        turn = bisect_right(turns, one) - 1
        # Whole iterations within one turn, a moment after it began.
        inside = turn >= 0 and turn + 1 < len(turns) and other < turns[turn + 1]
        if inside and one > turns[turn] + 0.02:
            found[turn].append(other - one)
    return [(round(median(turn), 6) if turn else 0.0, len(turn)) for turn in found]


def kills() -> None:
    """Kill the recorder, its target or both at random moments; the file must be whole."""
    draw = Random(SEED)
    # Some while it is about to begin, and the asked number while there is a file.
    early = [(i, WHO[i % len(WHO)], -draw.uniform(0.0, 2.0)) for i in range(EARLY)]
    jobs = early + [(i, WHO[i % len(WHO)], draw.uniform(0.0, 4.0)) for i in range(MOMENTS)]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda job: _killed(Path(folder), *job), jobs))
    keep(RESULTS, "kills", found)


def _killed(folder: Path, number: int, who: str, after: float) -> dict[str, Any]:
    path = folder / f"{number}{'early' if after < 0 else ''}.db"
    command = [*RUN, "-o", str(path), "--", sys.executable, "-c", GROW]
    recorder = subprocess.Popen(command)
    until = time.monotonic() + 60
    while after >= 0 and _readings(path) < 1 and time.monotonic() < until:
        time.sleep(0.02)
    time.sleep(abs(after))
    below = [p.pid for p in psutil.Process(recorder.pid).children(recursive=True)]
    before = _readings(path)
    chosen = {"recorder": [recorder.pid], "target": below}.get(who, [recorder.pid, *below])
    for pid in chosen:
        os.kill(pid, signal.SIGKILL)
    if who == "target" and not below:  # it had not started yet
        recorder.kill()
    recorder.wait(60)
    if who == "recorder":  # its target has no limit, and goes on without it
        for pid in below:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    until = time.monotonic() + 20
    while any(map(_alive, below)) and time.monotonic() < until:
        time.sleep(0.02)
    result = {
        "who": who,
        "after": round(after, 3),
        "before": before,
        "kept": _readings(path),
        "left": sum(map(_alive, below)),
    }
    if number % 20 == 0:
        say(f"{number} of {MOMENTS}: {result}")
    return result


def _alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _readings(path: Path) -> int:
    """How many readings a whole file has; -1 where it is not there yet, -2 where it is damaged."""
    if not path.exists():
        return -1
    try:
        return len(load(path).readings)
    except memfit.MemfitError as error:
        return -1 if not path.stat().st_size or "no recording" in str(error) else -2


def guard() -> None:
    """A child that allocates 2 GiB a second, and one as fast as it can, below a limit of 2 GiB."""
    found = []
    for rate in (2 * 2**30, 0):
        for number in range(TIMES):
            with tempfile.TemporaryDirectory() as folder:
                found.append({"rate": rate, **_guarded(Path(folder) / "run.db", rate)})
            say(f"{number + 1} of {TIMES}: {found[-1]}")
            keep(RESULTS, "guard", {"limit": GUARDED, "runs": found})


def _guarded(path: Path, rate: int) -> dict[str, Any]:
    fast = [sys.executable, str(HERE / "fast.py"), str(rate)]
    command = [*RUN, "--limit", str(GUARDED), "-o", str(path), "--", *fast]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    tree = psutil.Process(process.pid)
    seen, room = [0], [psutil.virtual_memory().available]

    def look() -> None:
        while process.poll() is None:
            with contextlib.suppress(psutil.NoSuchProcess):
                seen[0] = max([seen[0], *map(_high_water, tree.children(recursive=True))])
            room[0] = min(room[0], psutil.virtual_memory().available)
            time.sleep(0.02)

    watcher = threading.Thread(target=look)
    watcher.start()
    out, _ = process.communicate(timeout=120)
    watcher.join()
    trace = load(path)
    return {
        "exit_code": process.returncode,
        "reached_rate": float(out or 0),
        "kernel_peak": seen[0],
        "recorded_peak": trace.peak.bytes if trace.peak else 0,
        "least_available": room[0],
    }


def _high_water(process: psutil.Process) -> int:
    try:
        status = Path(f"/proc/{process.pid}/status").read_text()
    except OSError:
        return 0
    marks = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return max([0, *(int(line.split()[1]) * 1024 for line in marks)])


def sweep() -> None:
    """The drone as described, over agents, in a child limit of 4 GiB, to its out-of-memory row."""
    room = [psutil.virtual_memory().available]
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(0.05):
            room[0] = min(room[0], psutil.virtual_memory().available)

    before = room[0]
    watcher = threading.Thread(target=look)
    watcher.start()
    drone = [sys.executable, "-m", "memfit.systems.drone", "--as-described", "--iterations", "2"]
    command = [
        *(sys.executable, "-m", "memfit", "sweep", "drone.toml", "--over", "agents=25..800"),
        *("--limit", "4GiB", "--fresh", "--format", "json", "--on", "4GiB", "--on", "16GiB", "--"),
        *(*drone, "--agents", "{agents}"),
    ]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=ONE_THREAD)
    ended.set()
    watcher.join()
    found = json.loads(done.stdout)
    found["command"] = ["python", *found["command"][1:]]
    keep(RESULTS, "sweep", {**found, "available_before": before, "least_available": room[0]})


STAGES = {
    "cost": cost,
    "kills": kills,
    "guard": guard,
    "sweep": sweep,
    "table": lambda: table.write(RESULTS, HERE / "README.md"),
}


def main() -> None:
    """Run one stage."""
    run_stage("record", __doc__, STAGES)


if __name__ == "__main__":
    main()
