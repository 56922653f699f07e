"""Odd families, written after those of the report and used for the report alone as well."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import logging.handlers
import math
import weakref
from collections import deque
from typing import Any

import numpy as np

from benchmarks.leaks.base import Base
from benchmarks.leaks.families_tuning import segment

LIBC = ctypes.CDLL(None)
for _name in ("malloc", "aligned_alloc", "strdup"):
    getattr(LIBC, _name).restype = ctypes.c_void_p
LIBC.free.argtypes = [ctypes.c_void_p]


class Inner:
    """An environment within an environment, which knows the one that was there before it."""

    def __init__(self, before: Any, size: int) -> None:
        self.before = before
        self.map = np.ones(size, np.uint8)


class Recorder:
    """What notes the infos of each step."""

    def __init__(self) -> None:
        self.infos: list[dict[str, Any]] = []


class Listener:
    """Something that an event is told to."""

    def __init__(self, size: int) -> None:
        self.data = bytes(size)


# -- leaking ---------------------------------------------------------------------------------------


class AlignedPages(Base):
    """Blocks of C that begin at a larger border each, never freed."""

    LEAKS = True
    HOLDER = ""

    def prepare(self) -> None:
        self.border = self.draw.choice((128, 512, 4096))

    def on_reset(self) -> None:
        size = -(-self.a // self.border) * self.border
        block = LIBC.aligned_alloc(ctypes.c_size_t(self.border), ctypes.c_size_t(size))
        ctypes.memset(ctypes.c_void_p(block), 1, size)


class NativeStrings(Base):
    """A C library that copies a text at each step and never frees one."""

    LEAKS = True
    HOLDER = ""

    def on_step(self) -> None:
        LIBC.strdup(b"x" * max(32, self.a // self.length))


class TorchViews(Base):
    """A few numbers of a tensor that is changed in place: a view, which holds all of it."""

    LEAKS = True
    TORCH = True

    def prepare(self) -> None:
        import torch

        self.torch = torch
        self.keep([])

    def on_reset(self) -> None:
        whole = self.torch.zeros(max(256, self.a // 4))
        whole.add_(1.0)
        self.kept.append(whole[:4])


class ObjectArrays(Base):
    """Arrays of Python objects."""

    LEAKS = True

    def prepare(self) -> None:
        self.keep([])

    def on_reset(self) -> None:
        rows = max(16, self.a // 40)
        self.kept.append(np.array([self.t + 0.5 * row for row in range(rows)], dtype=object))


class NestedEnvs(Base):
    """Each episode has a new inner environment, which keeps the one before."""

    LEAKS = True
    HOLDER = "env.inner"

    def prepare(self) -> None:
        self.inner: Any = None

    def on_reset(self) -> None:
        self.inner = Inner(self.inner, self.a)


class KeptInfos(Base):
    """A recorder that keeps the infos of all steps."""

    LEAKS = True
    HOLDER = "env.recorder.infos"

    def prepare(self) -> None:
        self.recorder = Recorder()

    def on_step(self) -> None:
        seen = np.zeros(max(8, self.a // self.length), np.uint8)
        self.recorder.infos.append({"t": self.t, "seen": seen})


class MemoryViews(Base):
    """A few bytes of large ones, by views that hold them."""

    LEAKS = True

    def prepare(self) -> None:
        self.keep([])

    def on_reset(self) -> None:
        self.kept.append(memoryview(bytearray(self.a))[:8])


class PendingTasks(Base):
    """Tasks of asyncio that wait for what never comes."""

    LEAKS = True
    HOLDER = "env."

    def prepare(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.gate = asyncio.Event()

    async def wait(self, data: bytes) -> int:
        await self.gate.wait()
        return len(data)

    async def begin(self) -> None:
        self.tasks = {asyncio.ensure_future(self.wait(bytes(self.a)))}
        await asyncio.sleep(0)

    def on_reset(self) -> None:
        self.loop.run_until_complete(self.begin())


class CallbacksLater(Base):
    """A stack of what is to be done at the end, which never comes."""

    LEAKS = True
    HOLDER = "env.stack"

    def prepare(self) -> None:
        self.stack = contextlib.ExitStack()

    def on_reset(self) -> None:
        self.stack.callback(len, bytes(self.a))


# -- not leaking -----------------------------------------------------------------------------------


class Expiring(Base):
    """A cache whose entries are dropped some episodes later."""

    def prepare(self) -> None:
        self.keep({})
        self.life = self.draw.choice((3, 30, 150))

    def on_reset(self) -> None:
        self.kept[self.episode] = bytearray(self.a)
        self.kept.pop(self.episode - self.life, None)


class ReusedSegments(Base):
    """Shared memory that is closed at the end of each episode."""

    def on_reset(self) -> None:
        segment(max(4096, self.a)).close()


class FinishedTasks(Base):
    """Tasks of asyncio that come to their end."""

    def prepare(self) -> None:
        self.loop = asyncio.new_event_loop()

    async def work(self, number: int) -> int:
        data = bytearray(self.a)
        await asyncio.sleep(0)
        return len(data) + number

    async def all_of_it(self) -> None:
        await asyncio.gather(*(self.work(number) for number in range(5)))

    def on_reset(self) -> None:
        self.loop.run_until_complete(self.all_of_it())


class BufferedLog(Base):
    """Records of a log that wait until there are so many."""

    def prepare(self) -> None:
        many = self.draw.choice((50, 700, 3000))
        self.log = logging.Logger("env")
        self.log.addHandler(
            logging.handlers.MemoryHandler(many, logging.CRITICAL + 1, logging.NullHandler())
        )

    def on_step(self) -> None:
        self.log.info("step %d of episode %d: %s", self.t, self.episode, "x" * self.length)


class NativeScratch(Base):
    """Blocks of C that are freed in another order than they came."""

    def prepare(self) -> None:
        self.blocks: list[Any] = []

    def on_step(self) -> None:
        size = self.draw.randint(16, 2 * self.a)
        block = LIBC.malloc(ctypes.c_size_t(size))
        ctypes.memset(ctypes.c_void_p(block), 1, size)
        self.blocks.append(block)
        if len(self.blocks) > 20:
            LIBC.free(self.blocks.pop(self.draw.randrange(20)))


class Seasons(Base):
    """What is needed rises and falls again over many episodes."""

    def prepare(self) -> None:
        self.season = self.draw.choice((15, 60, 200))
        self.keep([])

    def on_reset(self) -> None:
        wave = 1 - math.cos(2 * math.pi * self.episode / self.season)
        self.keep([bytes(self.a) for _ in range(round(10 * wave))])


class TrimmedColumns(Base):
    """A table by hand of which the last rows stay."""

    def prepare(self) -> None:
        self.rows = self.draw.choice((100, 2000))
        self.keep({f"column {number}": [] for number in range(self.draw.randint(2, 12))})

    def on_step(self) -> None:
        for number, column in enumerate(self.kept.values()):
            column.append(self.t + 0.25 * number)

    def on_reset(self) -> None:
        for column in self.kept.values():
            del column[: -self.rows]


class WeakListeners(Base):
    """Listeners that a weak set knows, of which the last few live."""

    def prepare(self) -> None:
        self.known: weakref.WeakSet[Listener] = weakref.WeakSet()
        self.alive: deque[Listener] = deque(maxlen=self.draw.choice((2, 40)))

    def on_reset(self) -> None:
        listener = Listener(self.a)
        self.known.add(listener)
        self.alive.append(listener)


class SizesOfFrames(Base):
    """Frames by their size, of which there are a few dozen."""

    def prepare(self) -> None:
        self.keep({})
        self.sizes = self.draw.choice((4, 24, 48))

    def on_reset(self) -> None:
        side = 16 + 8 * self.draw.randrange(self.sizes)
        if side not in self.kept:
            self.kept[side] = np.ones((side, side, 3), np.uint8)


class TwoBuffers(Base):
    """Two buffers in turns, made larger where an episode needs it."""

    def prepare(self) -> None:
        self.keep([np.ones(self.a, np.uint8), np.ones(self.a, np.uint8)])

    def on_reset(self) -> None:
        front, back = self.kept
        needed = self.draw.randint(self.a // 2, 3 * self.a)
        self.keep([back if len(back) >= needed else np.ones(needed, np.uint8), front])
