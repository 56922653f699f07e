"""Replay buffers in files: written piece by piece, checked when read.

A file has a magic word, a version, the length and checksum of a header in JSON, the header,
then pieces of bytes, each with its length and checksum. It is written beside its place, brought
to the disk and then renamed, so that a crash leaves either the old file or the new one. What a
killed save has left beside it goes with the next one.

Checksums find damage, not wrong words: whoever reads a file compares its header with itself and
with the buffer.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import json
import os
import secrets
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from memfit.errors import UsageError

Array = NDArray[Any]

MAGIC = b"memfitRB"
VERSION = 2
_HEAD = struct.Struct("<8sIQI")
_PIECE = struct.Struct("<QI")


@dataclass(frozen=True, kw_only=True)
class SavedExtent:
    """Rows that one env fills, as a header tells of them.

    A compressed one that is full has `blocks`, of `sealed` rows together.
    """

    begin: int
    rows: int
    used: int
    blocks: int | None = None
    sealed: int | None = None

    @property
    def held(self) -> int:
        """Rows that can be read."""
        return self.used if self.sealed is None else self.sealed


def check_once(begins: Sequence[int], apart: int, most: int) -> None:
    """Raise ValueError unless these are all of at most so many extents, each of them once."""
    if len(begins) > most or sorted(begins) != list(range(0, apart * len(begins), apart)):
        raise ValueError("extents are there twice, not all are there, or too many")


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
            self.broken()
        text = file.read(length)
        if len(text) < length or zlib.crc32(text) != checksum:
            self.broken()
        try:
            self.header: dict[str, Any] = json.loads(text)
        except (ValueError, RecursionError):
            self.broken("its header is no JSON")
        if not isinstance(self.header, dict):
            self.broken("its header has no fields")

    def into(self, values: Array) -> None:
        """Read a piece into this array, which has exactly its bytes."""
        view = _bytes_of(values)
        length, checksum = self._next()
        if length != len(view):
            self.broken()
        read = self._file.readinto(view)  # type: ignore[attr-defined]
        if read != length or zlib.crc32(view) != checksum:
            self.broken()

    def raw(self) -> bytes:
        """A piece of any length."""
        length, checksum = self._next()
        if length > os.fstat(self._file.fileno()).st_size:
            self.broken()
        found = self._file.read(length)
        if len(found) < length or zlib.crc32(found) != checksum:
            self.broken()
        return found

    def end(self) -> None:
        if self._file.read(1):
            self.broken()

    def _next(self) -> tuple[int, int]:
        head = self._file.read(_PIECE.size)
        if len(head) < _PIECE.size:
            self.broken()
        length, checksum = _PIECE.unpack(head)
        return length, checksum

    def broken(self, why: str = "it is cut short or its checksum is wrong") -> NoReturn:
        """Refuse the file."""
        raise UsageError(
            f"{self._path} is damaged: {why}. Use another copy, or start with an empty buffer"
        )


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes the place of `path` once it is complete and on the disk."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        _remove_left_over(path)
        with open(beside, "xb") as file:
            with contextlib.suppress(OSError):  # not every disk knows locks
                fcntl.flock(file, fcntl.LOCK_EX)  # until this process ends, however it ends
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


def _remove_left_over(path: Path) -> None:
    """Remove what killed saves to this place have left: nobody holds a lock on it any more."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.{'[0-9a-f]' * 8}.part"):
        with contextlib.suppress(OSError), open(left, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            left.unlink()


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
