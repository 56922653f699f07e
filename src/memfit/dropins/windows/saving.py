"""Replay buffers in files: written piece by piece, checked when read.

A file has a magic word, a version, the length and checksum of a header in JSON, the header,
then pieces of bytes, each with its length and checksum. It is written beside its place, brought
to the disk and then renamed, so that a crash leaves either the old file or the new one.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from memfit.errors import UsageError

Array = NDArray[Any]

MAGIC = b"memfitRB"
VERSION = 1
_HEAD = struct.Struct("<8sIQI")
_PIECE = struct.Struct("<QI")


class Writer:
    """Writes pieces after the header."""

    def __init__(self, file: IO[bytes], header: dict[str, Any]) -> None:
        text = json.dumps(header).encode()
        file.write(_HEAD.pack(MAGIC, VERSION, len(text), zlib.crc32(text)))
        file.write(text)
        self._file = file

    def piece(self, values: Array | bytes) -> None:
        """Write an array's bytes without making a copy of it."""
        view = (
            _bytes_of(np.ascontiguousarray(values))
            if isinstance(values, np.ndarray)
            else memoryview(values)
        )
        self._file.write(_PIECE.pack(len(view), zlib.crc32(view)))
        self._file.write(view)


class Reader:
    """Reads what a Writer wrote; any difference is an error."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self._file = file
        self._path = path
        head = file.read(_HEAD.size)
        if len(head) < _HEAD.size or not head.startswith(MAGIC):
            raise UsageError(
                f"{path} is not a replay buffer that memfit saved. Give a file of its save()"
            )
        _, version, length, checksum = _HEAD.unpack(head)
        if version != VERSION:
            raise UsageError(
                f"{path} has version {version} of the format, this memfit reads {VERSION}. "
                "Load it with the memfit that saved it"
            )
        if length > os.fstat(file.fileno()).st_size:
            self._broken()
        text = file.read(length)
        if len(text) < length or zlib.crc32(text) != checksum:
            self._broken()
        self.header: dict[str, Any] = json.loads(text)

    def into(self, values: Array) -> None:
        """Read a piece into this array, which has exactly its bytes."""
        view = _bytes_of(values)
        length, checksum = self._next()
        if length != len(view):
            self._broken()
        read = self._file.readinto(view)  # type: ignore[attr-defined]
        if read != length or zlib.crc32(view) != checksum:
            self._broken()

    def raw(self) -> bytes:
        """A piece of any length."""
        length, checksum = self._next()
        if length > os.fstat(self._file.fileno()).st_size:
            self._broken()
        found = self._file.read(length)
        if len(found) < length or zlib.crc32(found) != checksum:
            self._broken()
        return found

    def end(self) -> None:
        if self._file.read(1):
            self._broken()

    def _next(self) -> tuple[int, int]:
        head = self._file.read(_PIECE.size)
        if len(head) < _PIECE.size:
            self._broken()
        length, checksum = _PIECE.unpack(head)
        return length, checksum

    def _broken(self) -> None:
        raise UsageError(
            f"{self._path} is damaged: it is cut short or its checksum is wrong. "
            "Use another copy, or start with an empty buffer"
        )


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes the place of `path` once it is complete and on the disk."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with open(beside, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        raise UsageError(
            f"cannot save to {path}: {error}. What was there before is unchanged; free some "
            "space or give another place"
        ) from error
    finally:
        beside.unlink(missing_ok=True)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Reader]:
    if not path.is_file():
        raise UsageError(f"there is no file {path}. Give a file of save()")
    with open(path, "rb") as file:
        yield Reader(file, path)


def _bytes_of(values: Array) -> memoryview:
    """The memory of an array itself, never of a copy."""
    flat = values.view()
    flat.shape = (values.size,)
    return memoryview(flat.view(np.uint8))  # type: ignore[arg-type]
