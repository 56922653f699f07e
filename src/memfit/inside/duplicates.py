"""Finds arrays that hold the same numbers twice, or in more bits than they need.

Rows are sampled first, always the same ones; what a sample suggests is then compared in full while
there is time, and otherwise told as a sample. Nothing is written, and no array is kept alive.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any

from .array_blocks import ArrayBlock, ArrayBlocks, torch_quiet  # noqa: TID252 - also loaded by path, see there
from .pace import Pace  # noqa: TID252

_LARGEST = 48  # of the blocks
_ROWS = 32
_LOOKED = 256
_PIECE = 1 << 20  # bytes compared in one step
_MOST = 0.5  # share of rows that must repeat
_NARROWER = {
    "float64": ("uint8", "int16", "float16", "float32"),
    "float32": ("uint8", "int16", "float16"),
    "int64": ("uint8", "int16", "int32"),
    "int32": ("uint8", "int16"),
}


class _Held:
    """A block and a numpy view of it, for as long as it is looked at."""

    def __init__(self, block: ArrayBlock, view: Any) -> None:
        self.block, self.view = block, view
        self.path = block.node.path()


class _Search:
    """One search, with its time limit."""

    def __init__(self, blocks: ArrayBlocks, pace: Pace, seconds: float) -> None:
        self.numpy: Any = sys.modules["numpy"]
        self.tensor = blocks.torch
        self.pace = pace
        self.until = time.perf_counter() + seconds
        whole = [b for b in blocks.large.values() if b.inside is None and b.device == "cpu"]
        whole.sort(key=lambda b: (-b.nbytes, b.start))
        self.blocks = whole[:_LARGEST]
        self.copies: set[int] = set()  # ids of blocks that were found to be another's copy
        self.findings: list[dict[str, Any]] = []

    @property
    def over(self) -> bool:
        self.pace.rest()
        return time.perf_counter() >= self.until

    def held(self, block: ArrayBlock) -> _Held | None:
        """A view of a block, or None where it has gone or cannot be seen as one array."""
        owner = block.owner() if block.owner is not None else None
        if owner is None:
            return None
        try:
            if block.library == "torch":
                owner = self.tensor.numpy(self.tensor.detach(owner))
            view = self.numpy.ndarray.view(owner, self.numpy.ndarray)
        except (RuntimeError, TypeError, ValueError):
            return None
        plain = view.dtype.kind in "biuf" and view.flags.c_contiguous and view.ndim
        return _Held(block, view) if plain and view.nbytes == block.nbytes else None

    def found(self, kind: str, holders: list[str], saved: float, evidence: str) -> None:
        fields = {"kind": kind, "holders": holders, "evidence": evidence}
        self.findings.append({**fields, "saved_bytes": int(saved)})

    def run(self) -> None:
        """Look at each block alone, then at pairs, the largest first."""
        for block in self.blocks:
            if self.over:
                return
            held = self.held(block)
            if held is not None and not self.repeated(held):
                self.narrower(held)
        for at, first in enumerate(self.blocks):
            for second in self.blocks[at + 1 :]:
                if self.over:
                    return
                if not self.copies & {id(first), id(second)}:
                    self.pair(first, second)

    def pair(self, first: ArrayBlock, second: ArrayBlock) -> None:
        if first.dtype != second.dtype:
            return
        one, two = self.held(first), self.held(second)
        if one is None or two is None:
            return
        if one.view.nbytes == two.view.nbytes and self.same(one, two):
            return
        if one.view.shape == two.view.shape and self.shifted(one, two):
            return
        if one.view.nbytes > two.view.nbytes:
            self.contained(two, one)

    def same(self, one: _Held, two: _Held) -> bool:
        """The same bytes in two blocks."""
        a, b = (self.numpy.ravel(held.view).view("u1") for held in (one, two))
        spread = _spread(len(a) - 64, 64)
        parts = [(a[at : at + 64], b[at : at + 64]) for at in spread]
        if any((x != y).any() for x, y in parts) or all((x == x[0]).all() for x, _ in parts):
            return False
        done = self.equal(a, b)
        if done == 0:
            return False
        self.copies.add(id(two.block))
        self.found(
            "same bytes",
            [one.path, two.path],
            one.view.nbytes,
            f"{two.path} holds the same bytes as {one.path} "
            f"({'all compared' if done == len(a) else f'{done:,} of {len(a):,} bytes compared'})",
        )
        return True

    def equal(self, a: Any, b: Any) -> int:
        """How many bytes were compared and are equal; 0 where one differs."""
        done = 0
        for part in self.pieces(a):
            if (a[part] != b[part]).any():
                return 0
            done = min(len(a), part.stop)
        return done

    def pieces(self, values: Any) -> Iterator[slice]:
        """Parts of an array one after the other, as long as there is time."""
        step = _PIECE // values.itemsize
        for begin in range(0, len(values), step):
            if self.over:
                return
            yield slice(begin, begin + step)

    def shifted(self, one: _Held, two: _Held) -> bool:
        """Rows of one array that are the other's rows, one later: observations kept twice."""
        if one.view.ndim < 2 or len(one.view) < 8:
            return False
        for now, later in ((one, two), (two, one)):
            alike = looked = 0
            for at in _filled(later.view):
                ahead, copy = _lines(now.view[at + 1]), _lines(later.view[at])
                filled = (copy != 0).any(axis=1)
                alike += int(((ahead == copy).all(axis=1) & filled).sum())
                looked += int(filled.sum())
            if looked >= 8 and alike / looked >= _MOST and not self.constant(now.view):
                self.found(
                    "shifted rows",
                    [later.path, now.path],
                    later.view.nbytes * alike / looked,
                    f"{alike} of {looked} sampled rows of {later.path} are those of {now.path} one "
                    "step later: keep one of them, and the last row of each episode",
                )
                return True
        return False

    def constant(self, view: Any) -> bool:
        """Whether rows do not change, so that any two of them are alike."""
        rows = [view[at] for at in _spread(len(view), 8)]
        return all((row == rows[0]).all() for row in rows[1:])

    def contained(self, inner: _Held, outer: _Held) -> None:
        """All of one array within another."""
        small, large = self.numpy.ravel(inner.view), self.numpy.ravel(outer.view)
        if outer.view.nbytes > 2**28:
            return
        at = next((i for i in _spread(len(small), 64) if small[i] != small[0]), None)
        if at is None:
            return
        for part in self.pieces(large):
            for hit in self.numpy.flatnonzero(large[part] == small[at])[:64]:
                low = part.start + int(hit) - at
                if low < 0 or low + len(small) > len(large):
                    continue
                if (large[low : low + len(small)] == small).all():
                    self.found(
                        "contained",
                        [inner.path, outer.path],
                        inner.view.nbytes,
                        f"all of {inner.path} is also in {outer.path}, {low:,} values from its "
                        "beginning",
                    )
                    return

    def repeated(self, held: _Held) -> bool:
        """Stacked frames or sliding windows: each row repeats most of the row before it."""
        view = held.view
        if view.ndim < 2 or len(view) < 8:
            return False
        rows = _filled(view)
        for axis, step in _windows(view.shape):
            size = view.shape[axis]
            alike = looked = 0
            for at in rows:
                if self.over:
                    return False
                before, now = view[at], view[at + 1]
                kept = _along(now, axis - 1, 0, size - step)
                moved = _along(before, axis - 1, step, size)
                cells, others = (_lines(part, envs=axis > 1) for part in (kept, moved))
                # A picture that stands still repeats in place, which is no window.
                still = _along(before, axis - 1, 0, size - step)
                differs = (_lines(still, envs=axis > 1) != others).any(axis=1)
                alike += int(((cells == others).all(axis=1) & differs).sum())
                looked += int(differs.sum())
                if looked >= 8 and not alike:
                    break
            if looked >= 8 and alike / looked >= _MOST:
                share = (size - step) / size
                self.found(
                    "repeated frames",
                    [held.path],
                    view.nbytes * share * alike / looked,
                    f"in {alike} of {looked} sampled rows of {held.path}, {size - step} of {size} "
                    f"entries of axis {axis} are those of the row before, moved by {step}",
                )
                return True
            if self.over:
                return False
        return False

    def narrower(self, held: _Held) -> None:
        """Values that fit a narrower type exactly."""
        flat = self.numpy.ravel(held.view)
        sample = flat[self.numpy.array(_spread(len(flat), 4096))]
        if not sample.any() or (sample == sample[0]).all():
            return  # not filled yet, it seems: this says nothing
        for name in _NARROWER.get(str(flat.dtype), ()):
            if not self.fits(sample, name):
                continue
            done = 0
            for part in self.pieces(flat):
                if not self.fits(flat[part], name):
                    break
                done = min(len(flat), part.stop)
            if done < len(flat) and not self.over:
                continue
            checked = "all" if done == len(flat) else f"all of {max(done, len(sample)):,} looked at"
            self.found(
                "narrower type",
                [held.path],
                held.view.nbytes * (1 - self.numpy.dtype(name).itemsize / flat.itemsize),
                f"the values of {held.path} are {flat.dtype} and fit {name} exactly ({checked})",
            )
            return

    def fits(self, values: Any, name: str) -> bool:
        numpy = self.numpy
        with numpy.errstate(all="ignore"):
            if name.startswith("float"):
                return bool(((values.astype(name) == values) | (values != values)).all())
            limits = numpy.iinfo(name)
            inside = (values >= limits.min) & (values <= limits.max)
            return bool(inside.all() and (values.astype(name) == values).all())


def duplicates(blocks: ArrayBlocks, pace: Pace, *, seconds: float) -> list[dict[str, Any]]:
    """What is held twice or too widely, the largest saving first."""
    if "numpy" not in sys.modules:
        return []
    search = _Search(blocks, pace, seconds)
    with torch_quiet():
        search.run()
    return sorted(search.findings, key=lambda f: (-f["saved_bytes"], f["holders"]))


def _spread(length: int, count: int) -> list[int]:
    """So many numbers below a length, evenly and always the same."""
    if length <= count:
        return list(range(max(0, length)))
    return [at * length // count for at in range(count)]


def _filled(view: Any) -> list[int]:
    """Some rows of the part of a buffer that has been written to, the last one left out."""
    written = [at for at in _spread(len(view), _LOOKED) if view[at].any()]
    if not written:
        return []
    return [written[0] + at for at in _spread(written[-1] - written[0], _ROWS)]


def _along(row: Any, axis: int, begin: int, end: int) -> Any:
    """A stretch of a row along one of its axes, without a copy."""
    return row[(slice(None),) * axis + (slice(begin, end),)]


def _lines(row: Any, *, envs: bool = True) -> Any:
    """The row of one step as one line for each environment, where environments have an axis."""
    return row.reshape(len(row), -1) if envs and row.ndim > 1 else row.reshape(1, -1)


def _windows(shape: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Axes along which rows may be windows, with the steps by which these may move."""
    for axis in range(1, len(shape)):
        size = shape[axis]
        if size < 2:
            continue
        yield axis, 1
        if axis == len(shape) - 1:
            yield from ((axis, s) for s in range(2, min(64, size // 2) + 1) if size % s == 0)
