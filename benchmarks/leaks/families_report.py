"""Families that were written last, for the report alone: nothing was tuned on them."""

from __future__ import annotations

import collections
import heapq
import logging
import os
import re
import tempfile
from typing import Any

import numpy as np

from benchmarks.leaks.base import Base

REGISTRY: dict[Any, Any] = {}


# -- leaking ---------------------------------------------------------------------------------------


class LogText(Base):
    """A text that gets longer and longer."""

    LEAKS = True

    def prepare(self) -> None:
        self.keep("")

    def on_reset(self) -> None:
        self.keep(self.kept + "x" * self.a)


class LogHandlers(Base):
    """Each episode adds a handler to the env's logger."""

    LEAKS = True
    HOLDER = "env.logger.handlers"

    def prepare(self) -> None:
        self.logger = logging.Logger("episode")

    def on_reset(self) -> None:
        handler = logging.NullHandler()
        handler.data = bytes(self.a)  # type: ignore[attr-defined]
        self.logger.addHandler(handler)


class Generators(Base):
    """Generators that are begun and never finished."""

    LEAKS = True

    def prepare(self) -> None:
        self.keep([])

    def on_reset(self) -> None:
        def replay() -> Any:
            data = bytearray(self.a)
            yield data
            yield None

        going = replay()
        next(going)
        self.kept.append(going)


class OpenFiles(Base):
    """A log file a few episodes, which is never closed."""

    LEAKS = True
    HOLDER = ""

    def on_reset(self) -> None:
        os.open(os.devnull, os.O_RDONLY)


class EpisodeRegistry(Base):
    """A dictionary of a module, by episode."""

    LEAKS = True
    HOLDER = "benchmarks.leaks.families_report.REGISTRY"

    def on_reset(self) -> None:
        REGISTRY[self.episode] = {"frames": [np.ones(self.a // 8, np.uint8) for _ in range(8)]}


# -- not leaking -----------------------------------------------------------------------------------


class OrderedLru(Base):
    """A cache made by hand, whose bound has a name of its own."""

    def prepare(self) -> None:
        self.how_many = self.draw.choice((30, 600, 4000))
        self.keep(collections.OrderedDict())

    def on_step(self) -> None:
        self.kept[self.episode, self.t] = bytes(max(16, self.a // self.length))
        if len(self.kept) > self.how_many:
            self.kept.popitem(last=False)


class BestEpisodes(Base):
    """A heap of the best episodes."""

    def prepare(self) -> None:
        self.keep([])
        self.best = self.draw.choice((10, 100))

    def on_reset(self) -> None:
        heapq.heappush(self.kept, (self.draw.random(), self.episode, bytes(self.a)))
        if len(self.kept) > self.best:
            heapq.heappop(self.kept)


class Saturates(Base):
    """A table of states, of which there are only so many."""

    def prepare(self) -> None:
        self.keep({})
        self.states = self.draw.choice((40, 300, 1500))

    def on_step(self) -> None:
        state = self.draw.randrange(self.states)
        self.kept.setdefault(state, bytearray(max(16, self.a // self.length)))


class FlushesNowAndThen(Base):
    """A buffer that is written out, and emptied, every so many episodes."""

    def prepare(self) -> None:
        self.keep([])
        self.period = self.draw.choice((5, 12, 40))

    def on_reset(self) -> None:
        self.kept.append(np.ones(self.a, np.uint8))
        if len(self.kept) >= self.period:
            self.kept.clear()


class Pool(Base):
    """Buffers that are used again, of which there are as many as were ever needed at once."""

    def prepare(self) -> None:
        self.keep([])
        self.used: list[Any] = []

    def on_step(self) -> None:
        if self.draw.random() < 0.5:
            self.used.append(self.kept.pop() if self.kept else np.ones(self.a // 4 + 1, np.uint8))
        elif self.used:
            self.kept.append(self.used.pop())

    def on_reset(self) -> None:
        self.kept.extend(self.used)
        self.used.clear()


class Replay(Base):
    """A replay buffer of several arrays that is filled from its beginning."""

    def prepare(self) -> None:
        rows = self.draw.choice((3000, 50_000))
        self.keep([np.zeros((rows, self.draw.choice((64, 1000))), np.float32) for _ in range(2)])
        self.at = 0

    def on_step(self) -> None:
        for array in self.kept:
            array[self.at % len(array)] = self.t
        self.at += 1


class Patterns(Base):
    """Patterns that the standard library caches, up to its own bound."""

    def on_step(self) -> None:
        re.match(f"episode {self.episode} step {self.t}", "episode")


class ScratchFiles(Base):
    """A file that is mapped, written and removed within an episode."""

    def on_reset(self) -> None:
        with tempfile.TemporaryFile() as file:
            file.truncate(1 << 20)
            mapped = np.memmap(file, np.uint8, "r+", shape=(1 << 20,))
            mapped[::4096] = 1
            del mapped


class ListThatShrinks(Base):
    """A list that grows for some episodes and is cut to half."""

    def prepare(self) -> None:
        self.keep([])
        self.most = self.draw.choice((200, 2000))

    def on_step(self) -> None:
        self.kept.append((self.episode, float(self.t)))
        if len(self.kept) > self.most:
            self.keep(self.kept[len(self.kept) // 2 :])
