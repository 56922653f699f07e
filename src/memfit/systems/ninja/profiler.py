"""The assessment's profiling of an environment, by a profiler that does not grow.

A profiler that keeps every snapshot of the allocations finds its own growth. This one takes two
snapshots, of which it keeps the sums by line, and in between only readings of a few numbers, in an
array of a fixed size: when it is full, every second reading is dropped.
"""

from __future__ import annotations

import cProfile
import gc
import io
import pstats
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np

from memfit.errors import UsageError
from memfit.systems.ninja.env import NinjaEnv
from memfit.systems.ninja.settings import EnvironmentConfig
from memfit.tracking import tree_bytes
from memfit.units import format_bytes

REPORT, STATS = "memory_profiling_report.txt", "profiling_stats.txt"
ROOM = 256  # readings
WARM_UP = 20  # frames before the first snapshot: first uses are no leak
LINES = 15
# Growth of what Python allocates from which on it is called a leak: a frame, and over half a run.
LEAK = 16
LEAK_IN_ALL = 8 << 10

_Sums = dict[tuple[str, int], int]


class FrameReadings:
    """Frames, and the bytes that were allocated and resident then, in a fixed room."""

    def __init__(self, room: int = ROOM) -> None:
        self.rows = np.zeros((room, 3), np.int64)
        self.count = 0
        self.every = 1  # of the readings that are offered, every how-many-th is kept
        self.offered = 0

    def add(self, frame: int, traced: int, resident: int) -> None:
        """Offer a reading."""
        if self.offered % self.every == 0:
            if self.count == len(self.rows):
                kept = self.count // 2
                self.rows[:kept] = self.rows[0 : 2 * kept : 2]
                self.count, self.every = kept, self.every * 2
            if self.offered % self.every == 0:
                self.rows[self.count] = frame, traced, resident
                self.count += 1
        self.offered += 1

    def growth(self) -> float:
        """Allocated bytes that a frame adds, by a line through the second half."""
        rows = self.rows[self.count // 2 : self.count].astype(np.float64)
        if len(rows) < 2 or rows[0, 0] == rows[-1, 0]:
            return 0.0
        frames = rows[:, 0] - rows[:, 0].mean()
        return float((frames * rows[:, 1]).sum() / (frames * frames).sum())

    def leaking(self) -> bool:
        """Whether that is too much to be chance."""
        rows = self.rows[self.count // 2 : self.count]
        span = int(rows[-1, 0] - rows[0, 0]) if len(rows) else 0
        return self.growth() >= LEAK and self.growth() * span >= LEAK_IN_ALL


def resident() -> int:
    """This process's proportional set size."""
    return tree_bytes()


def sums_by_line() -> _Sums:
    """What is allocated now, by the line that did it; the snapshot itself is not kept."""
    gc.collect()
    own = (tracemalloc.__file__, __file__)
    snapshot = tracemalloc.take_snapshot()
    return {
        (one.traceback[0].filename, one.traceback[0].lineno): one.size
        for one in snapshot.statistics("lineno")
        if one.traceback[0].filename not in own
    }


class Profiler:
    """Steps environments with random actions and watches their memory, or their time."""

    def __init__(self, config: EnvironmentConfig, *, n_envs: int, seed: int) -> None:
        self.envs = [NinjaEnv(config) for _ in range(n_envs)]
        self.draw = np.random.default_rng(seed)
        for number, env in enumerate(self.envs):
            env.reset(seed=seed + number)

    def frame(self) -> None:
        """One step of every environment."""
        for env in self.envs:
            _, _, ended, timeout, _ = env.step(self.draw.integers(env.action_space.n))  # type: ignore[attr-defined]
            if ended or timeout:
                env.reset()

    def memory(
        self, frames: int, interval: int, progress: Callable[[str, float], None]
    ) -> tuple[FrameReadings, _Sums, _Sums]:
        """Readings over so many frames, and what was allocated at both ends.

        Allocations are those that tracemalloc has traced: start it before making the profiler.
        """
        readings = FrameReadings()
        for _ in range(min(WARM_UP, frames)):
            self.frame()
        first = sums_by_line()
        for frame in range(1, frames + 1):
            self.frame()
            if frame % interval == 0:
                readings.add(frame, tracemalloc.get_traced_memory()[0], resident())
            progress("memory", frame / frames)
        return readings, first, sums_by_line()

    def times(self, frames: int, progress: Callable[[str, float], None]) -> str:
        """Where the time of so many frames goes."""
        profile = cProfile.Profile()
        for frame in range(1, frames + 1):
            profile.runcall(self.frame)
            progress("time", frame / frames)
        text = io.StringIO()
        pstats.Stats(profile, stream=text).sort_stats("cumulative").print_stats(40)
        return text.getvalue()


def report_of(
    readings: FrameReadings, first: _Sums, last: _Sums, *, frames: int, n_envs: int, built: int
) -> str:
    """The text of the memory report."""
    growth = readings.growth()
    rows = readings.rows[: readings.count]
    verdict = (
        f"LEAK: every frame adds {growth:,.0f} bytes"
        if readings.leaking()
        else f"no leak: allocated memory is stable ({growth:+,.1f} bytes a frame)"
    )
    grown = sorted(
        ((last.get(at, 0) - first.get(at, 0), at) for at in first.keys() | last.keys()),
        reverse=True,
    )
    lines = [
        "Memory profile of the ninja environment",
        "",
        f"environments: {n_envs:,}; frames of random actions: {frames:,}",
        f"making them took {format_bytes(built)} of resident memory",
        f"verdict: {verdict}",
        "",
        f"{'frame':>12} {'allocated':>14} {'resident':>14}",
    ]
    lines += [f"{frame:12,} {traced:14,} {held:14,}" for frame, traced, held in rows.tolist()]
    if not readings.count:
        lines.append("no readings: the interval is longer than the run")
    lines += ["", "lines that hold the most at the end, in bytes:"]
    most = sorted(((size, at) for at, size in last.items()), reverse=True)[:LINES]
    lines += [f"{size:14,} {_place(at)}" for size, at in most]
    lines += ["", "lines that grew the most between the first snapshot and the last, in bytes:"]
    lines += [f"{size:+14,} {_place(at)}" for size, at in grown[:LINES] if size > 0]
    if not grown or grown[0][0] <= 0:
        lines.append("none")
    lines += [
        "",
        "Allocated is what Python and NumPy hold, by tracemalloc. Pixels of pygame's surfaces are",
        "not in it; they are in resident, which is the process's PSS.",
    ]
    return "\n".join(lines) + "\n"


def _place(at: tuple[str, int]) -> str:
    """A file by its last two parts, and a line."""
    return f"{'/'.join(Path(at[0]).parts[-2:])}:{at[1]}"


def _traced(
    config: EnvironmentConfig,
    n_envs: int,
    seed: int,
    frames: int,
    interval: int,
    progress: Callable[[str, float], None],
) -> tuple[FrameReadings, _Sums, _Sums, int]:
    """The memory pass, from before the environments are made."""
    tracemalloc.start()
    try:
        before = resident()
        profiler = Profiler(config, n_envs=n_envs, seed=seed)
        built = resident() - before
        return *profiler.memory(frames, interval, progress), built
    finally:
        tracemalloc.stop()


def profile(
    config: EnvironmentConfig,
    *,
    n_envs: int,
    frames: int,
    interval: int,
    memory: bool,
    output: Path,
    seed: int,
    progress: Callable[[str, float], None] = lambda stage, share: None,
) -> list[Path]:
    """Profile, and write the reports; the files."""
    for name, value in (
        ("n-envs", n_envs),
        ("profile-frames", frames),
        ("memory-snapshot-interval", interval),
    ):
        if value < 1:
            raise UsageError(f"--{name} is {value}: give 1 or more")
    if not output.is_dir():
        raise UsageError(f"there is no folder {output}: make it first, or give another --output")
    texts = {}
    if memory:
        readings, first, last, built = _traced(config, n_envs, seed, frames, interval, progress)
        texts[REPORT] = report_of(readings, first, last, frames=frames, n_envs=n_envs, built=built)
    # Times are taken in a second pass, so that neither profiler counts the other.
    texts[STATS] = Profiler(config, n_envs=n_envs, seed=seed).times(frames, progress)
    written = []
    for name, text in texts.items():
        try:
            (output / name).write_text(text, encoding="utf-8")
        except OSError as error:
            raise UsageError(
                f"{output / name} cannot be written ({error.strerror}): give another --output"
            ) from None
        written.append(output / name)
    return written
