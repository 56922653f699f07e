"""4,000 KiB that C code of a thread holds, no Python object; half as much has been given back."""

import ctypes
import threading

from wait import ready

BLOCK = 100 * 1024
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p


def work() -> None:
    blocks = [libc.malloc(ctypes.c_size_t(BLOCK)) for _ in range(60)]
    for block in blocks:
        ctypes.memset(block, 1, BLOCK)
    for block in reversed(blocks[40:]):
        libc.free(ctypes.c_void_p(block))
    allocated.set()
    threading.Event().wait()


allocated = threading.Event()
threading.Thread(target=work, daemon=True).start()
allocated.wait()
ready()
