"""Confines the child to writing in few folders, by the kernel where that can be.

Linux's Landlock needs no privilege and holds for C libraries and other programs too. Where the
kernel has none (before 5.13, or hidden by a container), Python's own auditing refuses what it sees.
Neither keeps other programs from changing modes, owners and times of files. For a kernel that
gives namespaces, nothing of this is needed: see `memfit.measure.children.private_files`.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Sequence
from typing import Any

from memfit.model.confinement import Confinement

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # system calls, the same on every architecture
_NO_NEW_PRIVILEGES = 38  # for prctl
_ASK_VERSION = 1
_BENEATH = 1
# Writing to files, and removing and making each kind of thing (linux/landlock.h, bits 1, 4 to 12).
_WRITES = sum(1 << bit for bit in (1, *range(4, 13)))
_REFER, _TRUNCATE = 1 << 13, 1 << 14  # versions 2 and 3: moving between folders, truncating
_TCP, _TCP_VERSION = 3, 4  # binding and connecting, since version 4
_CONNECT = 1 << 1  # of these, connecting
_OUTSIDE = 1 << 0 | 1 << 1  # version 6: abstract Unix sockets and signals, of and to others
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


def confine(folders: Sequence[str], *, network: bool = False) -> Confinement:
    """Allow writing only beneath these folders; what holds from now on."""
    if _landlock(folders, network=network):
        return Confinement.LANDLOCK
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
    return Confinement.AUDITING


def no_network() -> bool:
    """Let this thread, and what it starts, open no TCP connection; whether the kernel can."""
    call = ctypes.CDLL(None, use_errno=True).syscall
    if call(_CREATE, None, ctypes.c_size_t(0), _ASK_VERSION) < _TCP_VERSION:
        return False
    rules = struct.pack("QQ", 0, _TCP)
    ruleset = call(_CREATE, rules, ctypes.c_size_t(len(rules)), 0)
    if ruleset < 0:
        return False
    try:
        return _restrict(call, ruleset)
    finally:
        os.close(ruleset)


def _landlock(folders: Sequence[str], *, network: bool) -> bool:
    call = ctypes.CDLL(None, use_errno=True).syscall
    version = call(_CREATE, None, ctypes.c_size_t(0), _ASK_VERSION)
    if version < 1:
        return False
    handled = _WRITES | (_REFER if version >= 2 else 0) | (_TRUNCATE if version >= 3 else 0)
    # A kernel wants as many of the three fields as its version has, or zeros.
    connect = _CONNECT if version >= _TCP_VERSION and not network else 0
    rules = struct.pack("QQQ", handled, connect, _OUTSIDE if version >= 6 else 0)
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
        return _restrict(call, ruleset)
    finally:
        os.close(ruleset)


def _restrict(call: Any, ruleset: int) -> bool:
    """Put a set of rules into force for this thread."""
    ctypes.CDLL(None).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    return bool(call(_RESTRICT, ruleset, 0) == 0)
