"""Rows kept compressed, in blocks that are opened one by one."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from memfit.dropins.windows.layout import Array, Window
from memfit.dropins.windows.saving import Reader, SavedExtent, check_once
from memfit.errors import MissingExtra, UsageError

# Large enough to find a frame in the one before it, small enough to open many in a millisecond.
BLOCK_BYTES = 1 << 15
# What was opened for the next observations is wanted again for the observations.
CACHE_BYTES = 1 << 22

Pack = Callable[[Any], bytes]
Unpack = Callable[[bytes, int], bytes]


def codec(name: str) -> tuple[Pack, Unpack]:
    """How to compress and open blocks, losslessly; what cannot be opened is a ValueError."""
    try:
        if name == "zstd":
            import zstandard

            pack = zstandard.ZstdCompressor(level=1, write_checksum=False)
            unpack = zstandard.ZstdDecompressor()

            def opened(packed: bytes, size: int) -> bytes:
                # A block may say that it is of any size, and the library believes it.
                if zstandard.frame_content_size(packed) != size:
                    raise ValueError("a compressed block is of another size")
                return unpack.decompress(packed, size)

            # The library shrinks a large piece of memory, which leaves holes between blocks that
            # nothing fits into: a copy has the right size from the start.
            return (
                lambda rows: bytes(memoryview(pack.compress(rows))),
                _strict(opened, zstandard.ZstdError),
            )
        if name == "lz4":
            import lz4.block  # type: ignore[import-untyped,unused-ignore]

            return (
                lambda rows: bytes(lz4.block.compress(rows, store_size=False)),
                _strict(
                    lambda packed, size: lz4.block.decompress(packed, uncompressed_size=size),
                    lz4.block.LZ4BlockError,
                ),
            )
    except ImportError as error:
        library = {"zstd": "zstandard", "lz4": "lz4"}[name]
        raise MissingExtra(
            f"compression={name!r} needs the library {library}. Install it: pip install {library}"
        ) from error
    raise UsageError(f"compression={name!r} is not known. Use 'zstd', 'lz4' or None")


def _strict(unpack: Unpack, error: type[Exception]) -> Unpack:
    """Open blocks of exactly so many bytes; a library's own error becomes a ValueError."""

    def opened(packed: bytes, size: int) -> bytes:
        try:
            found = bytes(unpack(packed, size))
        except error as why:
            raise ValueError(f"a compressed block cannot be opened: {why}") from None
        if len(found) != size:
            raise ValueError("a compressed block is of another size")
        return found

    return opened


class CompressedStrip:
    """Rows as a RawStrip has them, in extents of equal length.

    These are raw while they are filled, then blocks of compressed rows.
    """

    def __init__(self, part: Window, unit: np.dtype[Any], name: str) -> None:
        self.part = part
        self.unit = unit
        self.extent = 0
        self.name = name
        self._pack, self._unpack = codec(name)
        self._row_bytes = part.row * unit.itemsize
        self._block = max(1, BLOCK_BYTES // self._row_bytes)
        self._open: dict[int, Array] = {}
        self._packed: dict[int, list[bytes]] = {}
        self._rows: dict[int, int] = {}
        self._free: list[int] = []
        self._taken = 0
        self._cache: OrderedDict[tuple[int, int], Array] = OrderedDict()
        self._closed = False

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        del state["_pack"], state["_unpack"]
        return {**state, "_cache": OrderedDict()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._pack, self._unpack = codec(self.name)

    def take(self, rows: int, after: int = -1) -> int:
        self._check()
        # One number lies between extents, so that no two are taken for one run of rows.
        self.extent = self.extent or rows + 1
        if self._free:
            number = self._free.pop()
        else:
            number = self._taken
            self._taken += 1
        self._open[number] = self._empty(rows)
        return number * self.extent

    def seal(self, begin: int, rows: int) -> None:
        number = begin // self.extent
        raw = self._open.pop(number)
        self._packed[number] = [
            self._pack(raw[i : min(rows, i + self._block)].data)
            for i in range(0, rows, self._block)
        ]
        self._rows[number] = rows

    def release(self, begin: int, rows: int) -> None:
        number = begin // self.extent
        self._open.pop(number, None)
        for block in range(len(self._packed.pop(number, ()))):
            self._cache.pop((number, block), None)
        self._rows.pop(number, None)
        self._free.append(number)

    def write(self, at: Array, rows: Array) -> None:
        self._check()
        for start, new in zip(at.tolist(), rows, strict=True):
            number, first = divmod(start, self.extent)
            self._open[number][first : first + len(new)] = new

    def read(self, at: Array, count: int) -> Array:
        self._check()
        out = np.empty((len(at), count, self.part.outer, self.part.inner), self.unit)
        for i, start in enumerate(at.tolist()):
            self._copy(start, out[i])
        return out

    def fill(self, at: Array, out: Array) -> None:
        self._check()
        rows = out.transpose(0, 2, 1, 3)
        if self.part.newest_first:
            rows = rows[:, ::-1]
        for i, start in enumerate(at.tolist()):
            self._copy(start, rows[i])

    def clear(self) -> None:
        self._open.clear()
        self._packed.clear()
        self._rows.clear()
        self._cache.clear()
        self._free.clear()
        self._taken = 0

    def close(self) -> None:
        self.clear()
        self._closed = True

    @property
    def rows(self) -> int:
        """One more than the largest number of a row."""
        return self._taken * self.extent

    @property
    def nbytes(self) -> int:
        packed = sum(len(block) for blocks in self._packed.values() for block in blocks)
        return packed + sum(raw.nbytes for raw in self._open.values())

    def state(self) -> dict[str, Any]:
        return {"extent": self.extent, "taken": self._taken, "free": self._free}

    def restore(self, state: Mapping[str, Any], used: Sequence[int], rows: int, most: int) -> None:
        begins = [*used, *(number * (rows + 1) for number in state["free"])]
        check_once(begins, rows + 1, most)
        if state["extent"] != rows + 1 and (begins or state["extent"]):
            raise ValueError("extents are of another length")
        self.extent, self._taken, self._free = state["extent"], len(begins), list(state["free"])

    def extent_state(self, begin: int) -> dict[str, Any]:
        number = begin // self.extent
        if number not in self._packed:
            return {}
        return {"blocks": len(self._packed[number]), "sealed": self._rows[number]}

    def pieces(self, begin: int, used: int) -> Iterator[Array | bytes]:
        number = begin // self.extent
        if number in self._open:
            yield self._open[number][:used]
        else:
            yield from self._packed[number]

    def read_extent(self, extent: SavedExtent, reader: Reader) -> None:
        number = extent.begin // self.extent
        if extent.sealed is None:
            self._open[number] = self._empty(extent.rows)
            reader.into(self._open[number][: extent.used])
            return
        self._rows[number] = extent.sealed
        self._packed[number] = []
        for block in range(-(-extent.sealed // self._block)):
            self._packed[number].append(reader.raw())
            self._opened(number, block)  # which must be possible

    def _empty(self, rows: int) -> Array:
        return np.empty((rows, self.part.outer, self.part.inner), self.unit)

    def _copy(self, start: int, out: Array) -> None:
        """Copy as many rows as `out` has, through as many blocks as they lie in."""
        number, first = divmod(start, self.extent)
        raw = self._open.get(number)
        if raw is not None:
            out[...] = raw[first : first + len(out)]
            return
        done = 0
        while done < len(out):
            block, skip = divmod(first + done, self._block)
            rows = self._opened(number, block)[skip : skip + len(out) - done]
            out[done : done + len(rows)] = rows
            done += len(rows)

    def _opened(self, number: int, block: int) -> Array:
        key = (number, block)
        rows = self._cache.get(key)
        if rows is None:
            count = min(self._block, self._rows[number] - block * self._block)
            raw = self._unpack(self._packed[number][block], count * self._row_bytes)
            rows = np.frombuffer(raw, self.unit).reshape(count, self.part.outer, self.part.inner)
            self._cache[key] = rows
            if len(self._cache) * self._block * self._row_bytes > CACHE_BYTES:
                self._cache.popitem(last=False)
        return rows

    def _check(self) -> None:
        if self._closed:
            raise UsageError("this buffer was closed. Make a new one, or load one that was saved")
