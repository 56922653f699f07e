"""Replays allocations in a fork that was made before anything else disturbed malloc.

A recording leaves much free memory behind in malloc, which a replay would use up before it grows.
So a process is forked while malloc is as the run's own process has it; it waits until the sequence
is known, and then forks again for each replay. It needs the places of blocks, not what lies in
them: what tensors hold is forgotten there, so that it is not kept twice while the run's own goes on
changing.
"""

from __future__ import annotations

import ctypes
import gc
import mmap
import os
import pickle
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, BinaryIO

from memfit.measure.survey.malloc import Malloc
from memfit.measure.survey.malloc_replay import HeapGrowth, replay_often
from memfit.measure.survey.replay_steps import Run, RunNumbers

Block = tuple[int, int]  # an address and a number of bytes


class ReplayFork:
    """This process as it is now; it replays steps whenever it is told to.

    What lies in the blocks `unread` is not needed for that.
    """

    def __init__(self, *, unread: Iterable[Block] = ()) -> None:
        told_reader, told_writer = os.pipe()
        found_reader, found_writer = os.pipe()
        forgettable = list(unread)
        # Collecting garbage would write to every object, and so give each process its own copy.
        gc.freeze()
        self._pid = os.fork()
        if self._pid == 0:
            try:
                gc.disable()
                for address, size in forgettable:
                    _forget(address, size)
                Malloc().release(keep_top=True)
                os.close(told_writer)
                os.close(found_reader)
                with os.fdopen(told_reader, "rb") as told, os.fdopen(found_writer, "wb") as found:
                    self._serve(told, found)
            finally:
                os._exit(0)
        os.close(told_reader)
        os.close(found_writer)
        self._told = os.fdopen(told_writer, "wb")
        self._found = os.fdopen(found_reader, "rb")

    def replay(self, run: Run, seeds: int) -> dict[str, HeapGrowth]:
        """Growth at each moment, over so many draws."""
        told = RunNumbers.of(run)
        tables = memoryview(told.tables)
        pickle.dump((tables.nbytes, replace(told, tables=b""), seeds), self._told)
        self._told.write(tables)
        self._told.flush()
        del tables, told  # the fork has them now, and may be large itself
        growth: dict[str, HeapGrowth] = pickle.load(self._found)
        return growth

    def dismiss(self) -> None:
        """End the fork."""
        self._told.close()
        self._found.close()
        os.waitpid(self._pid, 0)

    def _serve(self, told: BinaryIO, found: BinaryIO) -> None:
        while told.peek(1):  # type: ignore[attr-defined]
            size, run, seeds = pickle.load(told)
            room = memoryview(mmap.mmap(-1, max(1, size)))[:size]  # malloc is to stay as it is
            if told.readinto(room) < size:  # type: ignore[attr-defined]
                return  # whoever tells it has ended
            pickle.dump(replay_often(replace(run, tables=room.cast("q")), range(seeds)), found)
            found.flush()


def blocks_of(tensors: Iterable[Any]) -> list[Block]:
    """Where the data of host tensors lie."""
    storages = (t.untyped_storage() for t in tensors if t.device.type == "cpu")
    return [(s.data_ptr(), s.nbytes()) for s in storages if s.data_ptr() and not s.is_shared()]


def _forget(address: int, size: int) -> None:
    """Give back the whole pages within a block, which read as zeros from then on."""
    first = -(-address // mmap.PAGESIZE) * mmap.PAGESIZE
    length = (address + size) // mmap.PAGESIZE * mmap.PAGESIZE - first
    if length > 0:
        ctypes.CDLL(None).madvise(
            ctypes.c_void_p(first), ctypes.c_size_t(length), mmap.MADV_DONTNEED
        )
