"""Synthetic runs of known kinds: leaks, filling buffers, plateaus and steps, with what breathes."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from memfit.model import Reading

MIB = 2**20
KINDS = ("leak", "steps", "filling", "plateau")
READINGS, EVERY = 2000, 0.5


@dataclass(frozen=True, kw_only=True)
class Synthetic:
    """A run: what it is, and all of its readings."""

    kind: str
    readings: list[Reading]
    size: int = 0


def synthetic(kind: str, draw: Random) -> Synthetic:
    """One run: a start, a trend of its kind, noise, and the rise and fall of updates."""
    base = draw.uniform(150, 4000) * MIB
    start = draw.choice([0, 0, 20, 60])  # readings of imports and building
    noise = draw.choice([0, 0.3, 3, 30]) * MIB
    breath, period = draw.choice([0, 0, 15, 150]) * MIB, draw.uniform(4, 90)
    rate = 10 ** draw.uniform(-2, 0.5) * MIB
    size = draw.uniform(80, 3000) * MIB
    often = draw.uniform(0.02, 0.4)
    level, filled = 0.0, 0.0
    readings = []
    for i in range(READINGS):
        seconds = i * EVERY
        if kind == "leak":
            level = rate * seconds
        elif kind == "steps" and draw.random() < often * EVERY:
            level += rate / often * draw.uniform(0.3, 1.7)
        elif kind == "filling":
            level = filled = min(size, rate * seconds)
        amount = base * min(1.0, (i + 1) / (start + 1)) + level + abs(draw.gauss(0, noise))
        amount += breath if seconds % period < 0.4 * period else 0
        readings.append(
            Reading(
                seconds=seconds,
                bytes=int(amount),
                filling=int(filled),
                room=int(size - filled) if kind == "filling" else 0,
            )
        )
    return Synthetic(kind=kind, readings=readings, size=int(size))
