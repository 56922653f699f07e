"""32 MiB of shared memory, half filled, that two processes map; and a shared array."""

import multiprocessing as mp
from multiprocessing import shared_memory
from multiprocessing.synchronize import Event

import numpy as np
from wait import ready


def hold(name: str, ready_too: Event) -> None:
    segment = shared_memory.SharedMemory(name=name)
    assert segment.buf is not None
    total = int(np.frombuffer(segment.buf, dtype=np.uint8)[: 16 * 2**20].sum())
    assert total == 16 * 2**20
    ready_too.set()
    mp.Event().wait(1000)


if __name__ == "__main__":
    context = mp.get_context("fork")
    segment = shared_memory.SharedMemory(create=True, size=32 * 2**20)
    assert segment.buf is not None
    np.frombuffer(segment.buf, dtype=np.uint8)[: 16 * 2**20] = 1
    anonymous = context.RawArray("b", 8 * 2**20)
    np.frombuffer(anonymous, dtype=np.uint8)[:] = 1
    there = context.Event()
    child = context.Process(target=hold, args=(segment.name, there), daemon=True)
    child.start()
    there.wait(60)
    ready()
    child.kill()
    child.join()
    segment.unlink()
