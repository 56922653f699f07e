"""Calls of the kernel that Python has no function for; OSError where the kernel refuses."""

from __future__ import annotations

import ctypes
import os
import struct

NEW_MOUNTS, NEW_IPC, NEW_USERS = 0x00020000, 0x08000000, 0x10000000  # linux/sched.h
NEW_PROCESSES, NEW_NETWORK = 0x20000000, 0x40000000
NO_SET_UID, NO_DEVICES, NO_PROGRAMS, NO_TIMES = 2, 4, 8, 1024  # linux/mount.h
BIND, MOVE, ALL_BELOW, PRIVATE = 4096, 8192, 16384, 1 << 18
SIGNAL_OF_PARENTS_END, DROP_FROM_BOUNDS, SUBREAPER, NO_NEW_PRIVILEGES = 1, 24, 36, 38  # for prctl
_MOUNT_SETATTR = 442  # the same on every architecture
_HERE, _RECURSIVE, _READ_ONLY = -100, 0x8000, 1
_LIBC = ctypes.CDLL(None, use_errno=True)


def prctl(option: int, value: int) -> None:
    """Change something of this process."""
    words = (ctypes.c_ulong(value), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))
    _check(_LIBC.prctl(option, *words))


def unshare(namespaces: int) -> None:
    """Give this process (of NEW_PROCESSES: those that it starts) namespaces of their own."""
    _check(_LIBC.unshare(namespaces))


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """Mount something, bind it elsewhere, or change how a mount behaves."""
    words = (source, target, kind)
    encoded = (os.fsencode(word) if word else None for word in words)
    _check(_LIBC.mount(*encoded, ctypes.c_ulong(flags), options.encode() or None), target)


def make_read_only(path: str) -> None:
    """Let nobody write through a mount and those below it (Linux 5.12)."""
    wanted = struct.pack("QQQQ", _READ_ONLY, 0, 0, 0)
    words = (_HERE, os.fsencode(path), _RECURSIVE, wanted, ctypes.c_size_t(len(wanted)))
    _check(_LIBC.syscall(_MOUNT_SETATTR, *words), path)


def _check(result: int, path: str | None = None) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
