"""Families on which the verdict was tuned: what leaks, and what only seems to."""

from __future__ import annotations

import ctypes
import functools
import gc
import importlib
import mmap
import socket
import threading
import weakref
from collections import deque
from multiprocessing.shared_memory import SharedMemory
from typing import Any

import numpy as np

from benchmarks.leaks.base import Base

LIBC = ctypes.CDLL(None)
LIBC.malloc.restype = ctypes.c_void_p
EVERYWHERE: list[Any] = []


class Thing:
    """An object as environments have them."""

    def __init__(self, number: int, size: int = 0) -> None:
        self.number = number
        self.data = bytes(size)
        self.other: Any = None


def segment(size: int) -> SharedMemory:
    """A shared segment that is written, and has no name any more."""
    made = SharedMemory(create=True, size=size)
    made.buf[:size] = bytes(size)
    made.unlink()
    return made


# -- leaking ---------------------------------------------------------------------------------------


class PythonTuples(Base):
    LEAKS = True

    def prepare(self) -> None:
        self.keep([])
        self.each = max(1, self.a // (200 * self.length))

    def on_step(self) -> None:
        for i in range(self.each):
            self.kept.append((self.episode, float(self.t) + i, str(self.t + 1000 * i) * 4))


class PythonDicts(Base):
    LEAKS = True

    def prepare(self) -> None:
        self.keep({})

    def on_reset(self) -> None:
        for i in range(max(1, self.a // 700)):
            self.kept[self.episode, i] = {
                "episode": self.episode * 1000,
                "info": str(i) * 99,
                "x": [i],
            }


class NumpyAtReset(Base):
    LEAKS = True

    def prepare(self) -> None:
        self.keep([])

    def on_reset(self) -> None:
        self.kept.append(np.ones(self.a, np.uint8))


class NumpyAtStep(Base):
    LEAKS = True

    def prepare(self) -> None:
        self.keep([])

    def on_step(self) -> None:
        self.kept.append(np.ones(max(16, self.a // self.length), np.uint8))


class ModuleList(Base):
    LEAKS = True
    HOLDER = "benchmarks.leaks.families_tuning.EVERYWHERE"

    def on_reset(self) -> None:
        EVERYWHERE.append(Thing(self.episode, self.a))


class CtypesMalloc(Base):
    LEAKS = True
    HOLDER = ""

    def on_reset(self) -> None:
        block = LIBC.malloc(ctypes.c_size_t(self.a))
        ctypes.memset(block, 1, self.a)


class MappedMemory(Base):
    LEAKS = True

    def prepare(self) -> None:
        self.keep([])

    def on_reset(self) -> None:
        block = mmap.mmap(-1, max(4096, self.a))
        block.write(b"x" * max(4096, self.a))
        self.kept.append(block)


class Threads(Base):
    LEAKS = True
    HOLDER = ""

    def prepare(self) -> None:
        self.never = threading.Event()

    def on_reset(self) -> None:
        threading.Thread(target=self.never.wait, daemon=True).start()


class Sockets(Base):
    LEAKS = True

    def prepare(self) -> None:
        self.keep([])

    def on_reset(self) -> None:
        self.kept.append(socket.socketpair())


class SharedSegments(Base):
    """Shared memory that is never closed."""

    LEAKS = True

    def prepare(self) -> None:
        self.keep([])

    def on_reset(self) -> None:
        self.kept.append(segment(max(4096, self.a)))


class TorchGraphs(Base):
    LEAKS = True
    TORCH = True

    def prepare(self) -> None:
        import torch

        self.torch = torch
        self.weights = torch.ones(max(64, self.a // 8), requires_grad=True)
        self.keep([])

    def on_reset(self) -> None:
        self.kept.append((self.weights * 2.0).tanh().sum())


class CyclesNotCollected(Base):
    LEAKS = True
    HOLDER = ""

    def prepare(self) -> None:
        gc.disable()

    def on_reset(self) -> None:
        one, two = Thing(self.episode, self.a), Thing(self.t)
        one.other, two.other = two, one


class Closures(Base):
    LEAKS = True

    def prepare(self) -> None:
        self.keep([])

    def on_reset(self) -> None:
        data = bytes(self.a)
        self.kept.append(lambda: len(data))


class UnboundedCache(Base):
    """A cache on a function of the env, which never forgets."""

    LEAKS = True
    HOLDER = "env.look_up"

    def prepare(self) -> None:
        each = max(16, self.a // self.length)

        @functools.cache
        def look_up(key: tuple[int, int]) -> bytes:
            return bytes(each)

        self.look_up = look_up

    def on_step(self) -> None:
        self.look_up((self.episode, self.t))


class VisitedStates(Base):
    """A set of all observations that were ever seen, as bytes."""

    LEAKS = True

    def prepare(self) -> None:
        self.keep(set())

    def on_step(self) -> None:
        self.kept.add(self.chance.bytes(max(32, self.a // self.length)))


class AlignedNative(Base):
    """Blocks of posix_memalign at steps that are never freed."""

    LEAKS = True
    HOLDER = ""

    def on_step(self) -> None:
        block = ctypes.c_void_p()
        size = max(64, self.a // self.length)
        LIBC.posix_memalign(ctypes.byref(block), ctypes.c_size_t(64), ctypes.c_size_t(size))
        ctypes.memset(block, 1, size)


class Exceptions(Base):
    """Exceptions that are kept, with all variables of their frames."""

    LEAKS = True

    def prepare(self) -> None:
        self.keep([])

    def fail(self) -> None:
        data = np.ones(self.a, np.uint8)
        raise ValueError(len(data))

    def on_reset(self) -> None:
        try:
            self.fail()
        except ValueError as error:
            self.kept.append(error)


# -- not leaking -----------------------------------------------------------------------------------


class Clean(Base):
    def on_step(self) -> None:
        self.last = np.ones(self.a, np.uint8)


class LruCache(Base):
    def prepare(self) -> None:
        size = self.a

        @functools.lru_cache(maxsize=self.draw.choice((64, 500, 3000)))
        def look_up(key: int) -> bytes:
            return bytes(size // 8)

        self.look_up = look_up

    def on_step(self) -> None:
        self.look_up(self.episode * 1000 + self.t)


class BoundedDeque(Base):
    def prepare(self) -> None:
        self.keep(deque(maxlen=self.draw.choice((100, 2000, 20_000, 1_000_000))))

    def on_step(self) -> None:
        self.kept.append(np.ones(max(16, self.a // self.length), np.uint8))


class LazyArray(Base):
    def prepare(self) -> None:
        self.rows = self.draw.choice((2000, 20_000, 200_000))
        self.keep(np.zeros((self.rows, self.draw.choice((64, 512, 4096))), np.uint8))
        self.at = 0

    def on_step(self) -> None:
        self.kept[self.at % self.rows] = self.t % 255 + 1
        self.at += 1


class BoundedList(Base):
    def prepare(self) -> None:
        self.capacity = self.draw.choice((50, 1000, 30_000))
        self.keep([])

    def on_step(self) -> None:
        self.kept.append(bytes(max(16, self.a // self.length)))
        if len(self.kept) > self.capacity:
            del self.kept[0]


class Spikes(Base):
    def prepare(self) -> None:
        self.period = self.draw.choice((3, 7, 25))
        self.keep(None)

    def on_reset(self) -> None:
        large = self.episode % self.period == 0
        self.keep(np.ones(self.draw.randint(1, 40) << 18, np.uint8) if large else None)


class Fragmented(Base):
    def prepare(self) -> None:
        self.keep([None] * self.draw.choice((50, 400)))

    def on_step(self) -> None:
        at = self.draw.randrange(len(self.kept))
        self.kept[at] = np.ones(self.draw.randint(100, 60_000), np.uint8)


class GrowsAndStops(Base):
    def prepare(self) -> None:
        self.until = self.draw.choice((20, 90, 200))
        self.keep([])

    def on_reset(self) -> None:
        if self.episode < self.until:
            self.kept.append(bytes(self.a))


class WeakCache(Base):
    def prepare(self) -> None:
        self.keep(weakref.WeakValueDictionary())
        self.last: deque[Thing] = deque(maxlen=self.draw.choice((1, 30)))

    def on_step(self) -> None:
        thing = Thing(self.t, self.a // 8)
        self.kept[self.episode * 1000 + self.t] = thing
        self.last.append(thing)


class CyclesCollectedLate(Base):
    def on_step(self) -> None:
        one, two = Thing(self.episode, self.a // 8), Thing(self.t)
        one.other, two.other = two, one


class ImportsLate(Base):
    def prepare(self) -> None:
        self.modules = ["xml.dom.minidom", "email.parser", "decimal", "sqlite3", "html.parser"]

    def on_reset(self) -> None:
        if self.episode % 9 == 0 and self.modules:
            importlib.import_module(self.modules.pop())


class HighWater(Base):
    def prepare(self) -> None:
        self.keep(np.ones(16, np.uint8))

    def on_reset(self) -> None:
        needed = int(self.a * (0.5 + abs(self.draw.gauss(0, 1))))
        if needed > len(self.kept):
            self.keep(np.ones(needed, np.uint8))
