"""Families of further kinds, written after all others and used for the report alone."""

from __future__ import annotations

import array
import asyncio
import contextvars
import ctypes
import gc
import multiprocessing
import pickle
import queue
import sqlite3
import sys
import tempfile
import weakref
from collections import ChainMap, deque
from typing import Any

import numpy as np

from benchmarks.leaks.base import Base

COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)


class Level:
    """A class of which each episode makes another one."""


class Entity:
    """Something in the game that has an identity of its own."""

    def __init__(self, number: int, size: int) -> None:
        self.number = number
        self.state = bytearray(size)
        self.other: Any = None

    def leave(self) -> None:
        """Go from the board."""


# -- leaking ---------------------------------------------------------------------------------------


class InternedNames(Base):
    """Names of what was seen, interned, and kept as keys."""

    LEAKS = True

    def prepare(self) -> None:
        self.keep({})
        self.each = max(1, self.a // 160)

    def on_reset(self) -> None:
        for number in range(self.each):
            self.kept[sys.intern(f"entity {number} of episode {self.episode}")] = number


class Subclasses(Base):
    """A class for each episode, which the class above it would forget, and a registry does not."""

    LEAKS = True

    def prepare(self) -> None:
        self.keep([])

    def on_reset(self) -> None:
        made = type(f"Level{self.episode}", (Level,), {"map": bytes(self.a)})
        self.kept.append(made)


class ForeignCallbacks(Base):
    """Functions that C is to call, kept for as long as C may."""

    LEAKS = True

    def prepare(self) -> None:
        self.keep([])

    def on_reset(self) -> None:
        data = bytes(self.a)
        self.kept.append(COMPARE(lambda value: value + len(data)))


class TablesInMemory(Base):
    """A database in memory that gets a row for each step."""

    LEAKS = True
    HOLDER = ""

    def prepare(self) -> None:
        self.base = sqlite3.connect(":memory:")
        self.base.execute("create table steps (episode integer, t integer, seen blob)")

    def on_step(self) -> None:
        seen = bytes(max(16, self.a // self.length))
        self.base.execute("insert into steps values (?, ?, ?)", (self.episode, self.t, seen))


class ContextsKept(Base):
    """The context of each episode, with what was set in it."""

    LEAKS = True

    def prepare(self) -> None:
        self.now: contextvars.ContextVar[Any] = contextvars.ContextVar("now")
        self.keep([])

    def on_reset(self) -> None:
        context = contextvars.copy_context()
        context.run(self.now.set, np.ones(self.a, np.uint8))
        self.kept.append(context)


class QueueNobodyReads(Base):
    """A queue to a logger that has ended."""

    LEAKS = True
    HOLDER = "env."

    def prepare(self) -> None:
        self.queue: queue.Queue[Any] = queue.Queue()

    def on_step(self) -> None:
        self.queue.put({"t": self.t, "seen": np.zeros(max(8, self.a // self.length), np.uint8)})


class PickledEpisodes(Base):
    """Each episode as bytes of pickle, by its number."""

    LEAKS = True

    def prepare(self) -> None:
        self.keep({})

    def on_reset(self) -> None:
        seen = np.ones(self.a, np.uint8)
        self.kept[self.episode] = pickle.dumps((self.episode, seen), pickle.HIGHEST_PROTOCOL)


class RowsThatGrow(Base):
    """A ring of a few arrays, each of which goes on growing."""

    LEAKS = True

    def prepare(self) -> None:
        self.keep([array.array("d") for _ in range(8)])

    def on_step(self) -> None:
        count = max(4, self.a // (8 * self.length))
        self.kept[self.t % 8].extend([float(self.t)] * count)


class ChainedScopes(Base):
    """Settings of an episode over those of the one before."""

    LEAKS = True
    HOLDER = "env.scope"

    def prepare(self) -> None:
        self.scope: ChainMap[str, Any] = ChainMap()

    def on_reset(self) -> None:
        if len(self.scope.maps) > 200:  # the oldest are merged, and nothing is dropped
            self.scope.maps[-100:] = [dict(ChainMap(*self.scope.maps[-100:]))]
        self.scope = self.scope.new_child({f"level of {self.episode}": bytes(self.a)})


class EntitiesWithFinalizers(Base):
    """What is to be done when an entity goes: a method of its own, which keeps it."""

    LEAKS = True
    HOLDER = "weakref."

    def on_reset(self) -> None:
        entity = Entity(self.episode, self.a)
        weakref.finalize(entity, entity.leave)


class TorchBuffers(Base):
    """A module that registers a buffer for each episode."""

    LEAKS = True
    TORCH = True
    HOLDER = "env.module"

    def prepare(self) -> None:
        import torch

        self.torch = torch
        self.module = torch.nn.Module()

    def on_reset(self) -> None:
        self.module.register_buffer(
            f"episode_{self.episode}", self.torch.ones(self.a // 4 + 1, dtype=self.torch.float32)
        )


# -- not leaking -----------------------------------------------------------------------------------


class MappedFiles(Base):
    """A file with frames that is mapped, written in a ring, and stays."""

    def prepare(self) -> None:
        self.file = tempfile.TemporaryFile()  # noqa: SIM115 - it stays
        self.rows = self.draw.choice((500, 20_000))
        self.keep(np.memmap(self.file, np.uint8, "w+", shape=(self.rows, 512)))
        self.at = 0

    def on_step(self) -> None:
        self.kept[self.at % self.rows] = self.t % 255
        self.at += 1


class WeakByValue(Base):
    """Entities by number, of which those live that the game has on its board."""

    def prepare(self) -> None:
        self.keep(weakref.WeakValueDictionary())
        self.board: list[Any] = [None] * self.draw.choice((5, 60, 300))

    def on_step(self) -> None:
        entity = Entity(self.t, self.a // 8)
        self.kept[self.episode, self.t] = entity
        self.board[self.draw.randrange(len(self.board))] = entity


class SlowCompaction(Base):
    """A table by day that is put together so often; until then each entry has one of its own."""

    def prepare(self) -> None:
        self.keep({})
        self.often = self.draw.choice((25, 90, 220))
        self.total = np.zeros(256)

    def on_reset(self) -> None:
        self.kept[self.episode] = np.full(self.a // 8 + 1, 1.0)
        if len(self.kept) >= self.often:
            self.total += sum(float(one.sum()) for one in self.kept.values())
            self.kept.clear()


class ReadPipe(Base):
    """A pipe between processes that is read at the end of each episode."""

    def prepare(self) -> None:
        self.there, self.here = multiprocessing.Pipe()

    def on_reset(self) -> None:
        self.there.send_bytes(bytes(min(self.a, 8192)))
        self.last = self.here.recv_bytes()


class RowsOfADatabase(Base):
    """A database in memory of which the last rows stay."""

    def prepare(self) -> None:
        self.base = sqlite3.connect(":memory:")
        self.base.execute("create table steps (at integer primary key, seen blob)")
        self.rows = self.draw.choice((200, 5000))
        self.at = 0

    def on_step(self) -> None:
        self.at += 1
        seen = bytes(max(16, self.a // self.length))
        self.base.execute("insert into steps values (?, ?)", (self.at, seen))
        if self.at % 50 == 0:
            self.base.execute("delete from steps where at <= ?", (self.at - self.rows,))


class ClassesThatGo(Base):
    """A class for each episode, of which only the last few stay."""

    def prepare(self) -> None:
        self.keep(deque(maxlen=self.draw.choice((1, 20))))

    def on_reset(self) -> None:
        self.kept.append(type(f"Level{self.episode}", (Level,), {"map": bytes(self.a)}))


class LoopsClosed(Base):
    """A loop of asyncio for each episode, which is closed at its end."""

    async def play(self) -> int:
        await asyncio.sleep(0)
        return len(bytes(self.a))

    def on_reset(self) -> None:
        asyncio.run(self.play())


class WindowOfArrays(Base):
    """Rows that are put together anew at each step, of which so many stay."""

    def prepare(self) -> None:
        self.keep(np.zeros((0, self.a // 64 + 1), np.float32))
        self.most = self.draw.choice((16, 200))

    def on_step(self) -> None:
        row = np.full((1, self.kept.shape[1]), self.t, np.float32)
        self.keep(np.concatenate([self.kept, row])[-self.most :])


class FrozenForks(Base):
    """What the collector is told to leave alone, at the first few episodes."""

    def on_reset(self) -> None:
        if self.episode in (2, 5):
            gc.freeze()
        one, two = Entity(self.episode, self.a // 8), Entity(self.t, 8)
        one.other, two.other = two, one
