"""Allocates and touches memory at a given rate in bytes a second until it is asked to end.

Then it prints the rate that it reached. A rate of 0 is as fast as it can.
"""

import ctypes
import mmap
import os
import signal
import sys
import time

rate, piece = int(sys.argv[1]), 16 * 2**20
kept: list[mmap.mmap] = []
started = last = time.perf_counter()


def end(number: int, frame: object) -> None:
    print(len(kept) * piece / (last - started), flush=True)
    os._exit(128 + number)


signal.signal(signal.SIGTERM, end)
while True:
    block = mmap.mmap(-1, piece)
    block.madvise(mmap.MADV_HUGEPAGE)  # with pages of 4 KiB most machines are slower than 2 GiB/s
    ctypes.memset(ctypes.addressof(ctypes.c_char.from_buffer(block)), 1, piece)
    kept.append(block)
    last = time.perf_counter()
    if rate:
        time.sleep(max(0.0, len(kept) * piece / rate - (last - started)))
