"""Families of an earlier report whose answers led to a change: part of the tuning set since."""

from __future__ import annotations

import logging
import math

from benchmarks.leaks.base import Base
from benchmarks.leaks.families_mapped import PAGE, private


class NamedLoggers(Base):
    """A logger by each episode's own name: `logging` never forgets one."""

    LEAKS = True
    HOLDER = "logging."

    def on_reset(self) -> None:
        logger = logging.getLogger(f"episode-{self.episode}")
        logger.first = bytearray(self.a)  # type: ignore[attr-defined]


class Columns(Base):
    """A table by hand: a list for each column, a row for each step."""

    LEAKS = True

    def prepare(self) -> None:
        names = max(2, self.a // (32 * self.length))
        self.keep({f"column {number}": [] for number in range(names)})

    def on_step(self) -> None:
        for number, column in enumerate(self.kept.values()):
            column.append(self.t + 0.25 * number)


class WavesBesideMaps(Base):
    """Python objects that rise and fall, beside memory that is mapped for an episode."""

    def prepare(self) -> None:
        self.season = self.draw.choice((7, 40, 150))
        self.keep([])
        self.scratch = private(PAGE)

    def on_reset(self) -> None:
        self.scratch.close()
        self.scratch = private(PAGE * self.draw.randint(1, 8))
        wave = 1 - math.cos(2 * math.pi * self.episode / self.season)
        self.keep([0.5 * number for number in range(round(self.a * wave))])
