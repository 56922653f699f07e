"""64 MiB for which huge pages are asked, all touched."""

import mmap

from wait import ready

block = mmap.mmap(-1, 66 * 2**20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
block.madvise(mmap.MADV_HUGEPAGE)
block[:] = b"\1" * len(block)
ready()
