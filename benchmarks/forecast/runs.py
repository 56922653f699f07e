"""What synthetic runs are made of: a start, a level, what breathes, spikes, noise, and a truth."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from memfit.model import Member, Reading

MIB = 2**20
LEAK, FILLING, NEITHER = "leak", "filling", "neither"
_TOLD_BYTES, _TOLD_SHARE = 20 * MIB, 0.02  # what growth must have added to be told
Amount = Callable[[float], float]  # bytes by time


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run: what it is, all of its readings, and what its growth has added at each."""

    kind: str
    truth: str
    readings: list[Reading]
    grown: list[int]
    members: tuple[Member, ...] = ()

    @property
    def tellable(self) -> int | None:
        """The first reading at which it has grown enough to be told; None where none is."""
        peak = 0
        for i, (reading, grown) in enumerate(zip(self.readings, self.grown, strict=True)):
            peak = max(peak, reading.bytes)
            if grown >= max(_TOLD_BYTES, _TOLD_SHARE * peak):
                return i
        return None

    @property
    def grows_until(self) -> float:
        """When it has grown for the last time, in seconds."""
        last = self.grown[-1]
        return next(r.seconds for r, g in zip(self.readings, self.grown, strict=True) if g >= last)


def log_uniform(draw: Random, low: float, high: float) -> float:
    return float(low * (high / low) ** draw.random())


class Steps:
    """A level that rises (or falls) at known times."""

    def __init__(self, steps: list[tuple[float, float]]) -> None:
        self.times = [at for at, _ in sorted(steps)]
        self.levels = [0.0]
        for _, amount in sorted(steps):
            self.levels.append(self.levels[-1] + amount)

    def __call__(self, seconds: float) -> float:
        return self.levels[bisect_right(self.times, seconds)]


@dataclass(kw_only=True)
class Maker:
    """Everything that adds to one run. Kinds change what they need, then `make` it."""

    draw: Random
    every: float = 0.25
    length: float = 0.0
    start: float = 0.0  # when importing and building are over
    added: list[Amount] = field(default_factory=list)
    leak: Amount = field(default=lambda seconds: 0.0)
    filled: Amount = field(default=lambda seconds: 0.0)
    size: float = 0.0  # of the block that is filled
    files: Amount = field(default=lambda seconds: 0.0)
    processes: Amount = field(default=lambda seconds: 1.0)
    noise: float = 0.0

    def make(self, kind: str, truth: str) -> Run:
        readings, grown = [], []
        for i in range(round(self.length / self.every)):
            seconds = i * self.every + self.draw.uniform(0, 0.2) * self.every
            filled, lost = self.filled(seconds), self.leak(seconds)
            amount = sum(add(seconds) for add in self.added) + filled + lost
            amount += abs(self.draw.gauss(0, self.noise))
            readings.append(
                Reading(
                    seconds=round(seconds, 3),
                    bytes=max(0, int(amount)),
                    processes=round(self.processes(seconds)),
                    filling=int(filled),
                    room=int(self.size - filled) if filled else 0,
                    files=int(self.files(seconds)),
                )
            )
            grown.append(int(lost + filled))
        return Run(kind=kind, truth=truth, readings=readings, grown=grown)


def begun(draw: Random, *, longest: float = 25.0) -> Maker:
    """A run that imports and builds, and then stays at what it has."""
    run = Maker(draw=draw, every=draw.choice([0.25, 0.25, 0.5, 1.0]))
    run.noise = draw.choice([0, 0.05, 0.3, 1, 4]) * MIB
    importing = log_uniform(draw, 0.8, longest / 2)
    building = draw.choice([0.0, log_uniform(draw, 0.3, longest / 2)])
    imports, base = draw.uniform(60, 500) * MIB, log_uniform(draw, 150, 4000) * MIB
    built = max(0.0, base - imports)
    loads = [(draw.uniform(0, importing), draw.uniform(0.2, 1)) for _ in range(draw.randint(4, 30))]
    whole = sum(size for _, size in loads)
    objects = [
        (importing + draw.uniform(0, building), draw.uniform(0.2, 1))
        for _ in range(draw.randint(1, 20))
    ]
    parts = sum(size for _, size in objects)
    imported = Steps([(at, imports * size / whole) for at, size in loads])
    run.files = lambda seconds: 0.5 * imported(seconds)
    run.added = [imported, Steps([(at, built * size / parts) for at, size in objects])]
    run.start = importing + building
    run.length = run.start + log_uniform(draw, 120, 1500)
    return run


def breathing(draw: Random, start: float, *, longest: float = 40.0) -> Amount:
    """The rise and fall of updates."""
    height, period = log_uniform(draw, 5, 300) * MIB, log_uniform(draw, 0.5, longest)
    share, begins = draw.uniform(0.1, 0.7), start + draw.uniform(0, 1) * period

    def amount(seconds: float) -> float:
        since = seconds - begins
        return height if since > 0 and since % period < share * period else 0.0

    return amount


def teeth(draw: Random, start: float, *, longest: float = 12.0) -> Amount:
    """Lists of a rollout that grow, and are dropped after each update."""
    height, period = log_uniform(draw, 5, 200) * MIB, log_uniform(draw, 0.5, longest)
    return lambda seconds: height * ((seconds - start) % period) / period if seconds > start else 0


def spikes(draw: Random, start: float, length: float) -> Amount:
    """Evaluations, checkpoints and copies: seldom, tall and short."""
    often, tall = log_uniform(draw, 8, 200), log_uniform(draw, 10, 800) * MIB
    marks, at = [], start
    while (at := at + draw.expovariate(1 / often)) < length:
        height, lasts = tall * draw.uniform(0.3, 1), log_uniform(draw, 0.2, 4)
        marks += [(at, height), (at + lasts, -height)]
    return Steps(marks)
