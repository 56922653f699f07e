"""Confines the child to writing in few folders, by the kernel where that can be.

Linux's Landlock needs no privilege and holds for C libraries and other programs too. Where the
kernel has none (before 5.13, or hidden by a container), Python's own auditing refuses what it sees.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Sequence
from typing import Any

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # system calls, the same on every architecture
_NO_NEW_PRIVILEGES = 38  # for prctl
_ASK_VERSION = 1
_BENEATH = 1
# Writing to files, and removing and making each kind of thing (linux/landlock.h, bits 1, 4 to 12).
_WRITES = sum(1 << bit for bit in (1, *range(4, 13)))
_REFER, _TRUNCATE = 1 << 13, 1 << 14  # versions 2 and 3: moving between folders, truncating
_OPENED_TO_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# Python's audit events that change files, and the argument that names the file.
_CHANGES = {
    "os.chmod": 0,
    "os.chown": 0,
    "os.link": 1,
    "os.mkdir": 0,
    "os.remove": 0,
    "os.rename": 1,
    "os.rmdir": 0,
    "os.symlink": 1,
    "os.truncate": 0,
    "os.utime": 0,
    "sqlite3.connect": 0,
}


def confine(folders: Sequence[str]) -> None:
    """Allow writing only beneath these folders."""
    if _landlock(folders):
        return
    roots, changes = tuple(f"{os.path.realpath(folder)}/" for folder in folders), dict(_CHANGES)

    def refuse(event: str, args: tuple[Any, ...], writing: int = _OPENED_TO_WRITE) -> None:
        path = args[changes[event]] if event in changes else None
        if event == "open" and args[2] & writing and not os.path.isdir(args[0]):  # noqa: PTH112
            path = args[0]
        if isinstance(path, str | bytes) and path not in ("", ":memory:"):
            full = os.path.realpath(os.fsdecode(path))
            if not full.startswith(roots):
                raise PermissionError(f"a plan changes no file: {full}")

    sys.addaudithook(refuse)


def _landlock(folders: Sequence[str]) -> bool:
    call = ctypes.CDLL(None, use_errno=True).syscall
    version = call(_CREATE, None, ctypes.c_size_t(0), _ASK_VERSION)
    if version < 1:
        return False
    handled = _WRITES | (_REFER if version >= 2 else 0) | (_TRUNCATE if version >= 3 else 0)
    rules = struct.pack("Q", handled)
    ruleset = call(_CREATE, rules, ctypes.c_size_t(len(rules)), 0)
    if ruleset < 0:
        return False
    try:
        for folder in folders:
            fd = os.open(folder, os.O_PATH)
            try:
                if call(_ADD, ruleset, _BENEATH, struct.pack("=Qi", handled, fd), 0):
                    return False
            finally:
                os.close(fd)
        ctypes.CDLL(None).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        return bool(call(_RESTRICT, ruleset, 0) == 0)
    finally:
        os.close(ruleset)
