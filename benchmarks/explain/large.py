"""Touch so many bytes, in small pages, and wait for the end of standard input."""

import mmap
import sys

amount = int(sys.argv[1])
block = mmap.mmap(-1, amount, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
block.madvise(mmap.MADV_NOHUGEPAGE)
chunk = b"\1" * 2**20
for start in range(0, amount, len(chunk)):
    block[start : start + len(chunk)] = chunk[: amount - start]
print("ready", flush=True)
sys.stdin.read()
