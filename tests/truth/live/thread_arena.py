"""16 MiB that C code of a thread has allocated in blocks of 64 KiB, held by no Python object."""

import ctypes
import threading

from wait import ready

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p


def work() -> None:
    for _ in range(256):
        ctypes.memset(libc.malloc(ctypes.c_size_t(65536)), 1, 65536)
    allocated.set()
    threading.Event().wait()


allocated = threading.Event()
threading.Thread(target=work, daemon=True).start()
allocated.wait()
ready()
