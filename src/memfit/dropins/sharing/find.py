"""Data that processes find in each other's hands, without a file, a server or a lock file.

Data lies in a memfd: memory that lives for as long as a process has it open or mapped, and not
a moment longer, however processes end. Its name has a digest of the key; /proc says which
processes have it. It is sealed when it is complete, after which nobody can write to it. While
one process makes the data, it has a socket's name bound; the others wait for its end.
"""
# ruff: noqa: PTH110, PTH115, PTH116 - thousands of links are read: plain calls are quicker

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import pickle
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from typing import Any

from memfit.errors import TargetFailed

ALIGN = 64
PAGE = 4096
_HEAD = struct.Struct("<8sQQ")  # magic, bytes of the description, bytes of the structure
_MAGIC = b"memfit01"
_COMPLETE = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
_PEER = struct.Struct("iII")  # process, user and group at the other end of a socket
_WAIT_SECONDS = 0.01
_LOOK_SECONDS = 1.0
_MOST_REFUSALS = 100


def file_name(digest: str) -> str:
    return f"memfit-{digest}"


def write(
    digest: str, origin: dict[str, Any], structure: bytes, arrays: Sequence[Any]
) -> mmap.mmap:
    """Lay down data for all processes of this user; it is there while the result is held."""
    places, end = [], 0
    for array in arrays:
        places.append((end, array.nbytes))
        end = _up(end + array.nbytes, ALIGN)
    told = pickle.dumps({"places": places, "origin": origin})
    head = _HEAD.pack(_MAGIC, len(told), len(structure)) + told + structure
    start = _up(len(head), PAGE)
    flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
    fd = os.memfd_create(file_name(digest), flags)
    try:
        os.ftruncate(fd, _up(start + end, PAGE))
        pwrite(fd, memoryview(head), 0)
        for array, (place, _) in zip(arrays, places, strict=True):
            pwrite(fd, array, start + place)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _COMPLETE)
        return _mapped(f"/proc/self/fd/{fd}")
    except OSError as error:
        raise TargetFailed(
            f"{start + end} bytes of shared memory could not be had: {error}. Free memory, or "
            "share less"
        ) from error
    finally:
        os.close(fd)


def read(memory: mmap.mmap) -> tuple[dict[str, Any], bytes, list[memoryview]]:
    """Where data is from, its structure, and its arrays."""
    _, n_told, n_structure = _HEAD.unpack_from(memory)
    at = _HEAD.size
    told = pickle.loads(memory[at : at + n_told])
    structure = memory[at + n_told : at + n_told + n_structure]
    start = _up(at + n_told + n_structure, PAGE)
    view = memoryview(memory)
    arrays = [view[start + place : start + place + size] for place, size in told["places"]]
    return told["origin"], structure, arrays


def find(digest: str) -> mmap.mmap | None:
    """The data of a digest, if any process of this user has it."""
    wanted = f"/memfd:{file_name(digest)} (deleted)"
    for path in _descriptors():
        try:
            if os.readlink(path) == wanted:
                return _mapped(path)
        except OSError:
            continue  # closed meanwhile, or still being made
    return None


def _descriptors() -> Iterator[str]:
    user = os.geteuid()
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            if os.stat(f"/proc/{name}").st_uid != user:
                continue
            numbers = os.listdir(f"/proc/{name}/fd")
        except OSError:
            continue  # gone, or not ours to look into
        for number in numbers:
            yield f"/proc/{name}/fd/{number}"


def _mapped(path: str) -> mmap.mmap:
    """A read-only mapping of complete data; OSError if it is not that."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if os.fstat(fd).st_uid != os.geteuid():
            raise PermissionError(path)
        if fcntl.fcntl(fd, fcntl.F_GET_SEALS) & _COMPLETE != _COMPLETE:
            raise BlockingIOError(path)
        # The mapping has a descriptor of its own, by which others find the data.
        memory = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
        if memory[: len(_MAGIC)] != _MAGIC:
            raise FileNotFoundError(path)
        return memory
    finally:
        os.close(fd)


class Turn:
    """The right to make the data of a digest: one process at a time, freed when it ends."""

    def __init__(self, digest: str) -> None:
        self._name = f"\0memfit-{os.geteuid()}-{digest}"
        self._socket: socket.socket | None = None
        self._refused = 0

    def take(self) -> bool:
        """Whether it is ours now."""
        bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            bound.bind(self._name)
            bound.listen(128)
        except OSError:
            bound.close()
            # The name may be held by a fork of a process that has given its turn back.
            return self._refused > _MOST_REFUSALS
        self._socket = bound
        return True

    def wait(self) -> None:
        """Until the process that has it gives it back, or ends; at most about a second."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as end:
            end.settimeout(_LOOK_SECONDS)
            try:
                end.connect(self._name)
                peer = end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
                if self._is_maker(*_PEER.unpack(peer)[:2]):
                    self._refused = 0
                    end.recv(1)
                    return
            except TimeoutError:
                return
            except OSError:
                pass
        self._refused += 1
        time.sleep(_WAIT_SECONDS)

    def _is_maker(self, process: int, user: int) -> bool:
        """Whether the other end may be making data: it is of this user, and there."""
        return user == os.geteuid() and os.path.exists(f"/proc/{process}")

    def give_back(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)  # for forks that hold it, too
            self._socket.close()
            self._socket = None


def pwrite(fd: int, data: memoryview, at: int) -> None:
    """Write all bytes, however many the system takes at a time."""
    while data.nbytes:
        written = os.pwrite(fd, data, at)
        data, at = data[written:], at + written


def _up(size: int, to: int) -> int:
    return -(-size // to) * to
