"""Families written last, after mapped and shared memory were told apart: for the report alone."""

from __future__ import annotations

import atexit
import mmap
import os
from collections import deque
from multiprocessing.shared_memory import SharedMemory
from typing import Any

import numpy as np

from benchmarks.leaks.base import Base

PAGE = mmap.PAGESIZE


def private(size: int) -> mmap.mmap:
    """Private memory that is mapped for itself, and written."""
    made = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    made.write(b"\1" * size)
    return made


def in_memory(size: int) -> mmap.mmap:
    """A file in memory without a name, mapped and written; the file itself is closed."""
    file = os.memfd_create("frames")
    os.truncate(file, size)
    made = mmap.mmap(file, size)
    os.close(file)
    made.write(b"\1" * size)
    return made


# -- leaking ---------------------------------------------------------------------------------------


class PrivateMaps(Base):
    """A little private memory for each episode, beside as many Python objects."""

    LEAKS = True

    def prepare(self) -> None:
        self.keep([])

    def on_reset(self) -> None:
        numbers = [float(self.episode + number) for number in range(self.a // 64)]
        self.kept.append((private(-(-self.a // PAGE) * PAGE), numbers))


class FilesInMemory(Base):
    """Files in memory that stay mapped."""

    LEAKS = True

    def prepare(self) -> None:
        self.keep([])

    def on_reset(self) -> None:
        self.kept.append(in_memory(-(-self.a // PAGE) * PAGE))


class AtTheEnd(Base):
    """What is to be done when Python ends, registered at each episode with its data."""

    LEAKS = True
    HOLDER = ""

    def on_reset(self) -> None:
        atexit.register(len, np.ones(self.a, np.uint8).tobytes())


class OneLongText(Base):
    """One array of bytes that is made longer at each step."""

    LEAKS = True

    def prepare(self) -> None:
        self.keep(bytearray())

    def on_step(self) -> None:
        self.kept.extend(b"x" * max(32, self.a // self.length))


class WrappersOfWrappers(Base):
    """Each episode wraps what was there in one more function."""

    LEAKS = True
    HOLDER = "env."

    def prepare(self) -> None:
        self.reward = lambda value: value

    def on_reset(self) -> None:
        inner, data = self.reward, bytes(self.a)
        self.reward = lambda value: inner(value) if value > 0 else len(data)


# -- not leaking -----------------------------------------------------------------------------------


class SegmentsInTurns(Base):
    """The shared segments of the last few episodes."""

    def prepare(self) -> None:
        self.keep(deque())
        self.many = self.draw.choice((2, 10, 40))

    def on_reset(self) -> None:
        made = SharedMemory(create=True, size=max(PAGE, self.a))
        made.buf[: self.a] = b"\1" * self.a
        made.unlink()
        self.kept.append(made)
        if len(self.kept) > self.many:
            self.kept.popleft().close()


class SharedBuffer(Base):
    """A large shared buffer that is filled as episodes go on, and begun anew at its end."""

    def prepare(self) -> None:
        self.room = self.draw.choice((1, 8, 64)) << 20
        self.keep(mmap.mmap(-1, self.room))
        self.at = 0

    def on_reset(self) -> None:
        if self.at + self.a > self.room:
            self.at = 0
        self.kept[self.at : self.at + self.a] = b"\1" * self.a
        self.at += self.a


class LargestSoFar(Base):
    """A mapped buffer that is as large as the longest episode needed."""

    def prepare(self) -> None:
        self.keep(private(PAGE))

    def on_reset(self) -> None:
        wanted = PAGE * (1 + self.draw.randrange(24))
        if wanted > len(self.kept):
            old: Any = self.kept
            self.keep(private(wanted))
            old.close()
