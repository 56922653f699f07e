"""Which part of an observation is a window over time, declared or found in the data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memfit.errors import UsageError

Array = NDArray[Any]

MOST_PARTS = 8
# Shifts of a large observation are tried until this many numbers were compared.
MOST_NUMBERS = 20_000_000
# A run of equal numbers shorter than this may be chance.
SHORTEST = 4


@dataclass(frozen=True, kw_only=True)
class Window:
    """A stretch of the flattened observation whose rows move on as time passes.

    The stretch begins at `offset` and has `outer * length * inner` numbers: `length` rows in
    time order, each of `outer * inner` numbers. A stack of frames on the first axis, and a
    history written row after row, have `outer=1`; a stack on the last axis has `inner=1` and
    `outer` pixels. Each step brings `new` rows; the newest is last unless `newest_first`.
    """

    length: int
    offset: int = 0
    inner: int = 1
    outer: int = 1
    new: int = 1
    newest_first: bool = False

    def __post_init__(self) -> None:
        least = min(self.length, self.inner, self.outer, self.new)
        if least < 1 or self.offset < 0 or self.new > self.length:
            raise UsageError(
                f"{self}: not a window. Give positive sizes, and no more new rows than rows"
            )

    @property
    def row(self) -> int:
        """Numbers in one row."""
        return self.outer * self.inner

    @property
    def size(self) -> int:
        """Numbers in the whole window."""
        return self.row * self.length

    @property
    def end(self) -> int:
        return self.offset + self.size

    @property
    def moves(self) -> bool:
        """A plain part is one row, replaced at each step."""
        return self.new < self.length

    def __str__(self) -> str:
        where = f"numbers {self.offset} to {self.end - 1}"
        if not self.moves:
            return f"{where}: plain"
        order = "first" if self.newest_first else "last"
        return f"{where}: {self.length} rows of {self.row}, {self.new} new a step, newest {order}"


def stack(shape: Sequence[int], *, axis: int = 0, frames: int | None = None) -> Window:
    """The window of a frame stack: `frames` of them along one axis of an observation."""
    axis %= len(shape)
    length = frames or shape[axis]
    if shape[axis] % length:
        raise UsageError(f"axis {axis} of {tuple(shape)} does not hold {length} equal frames")
    deep = shape[axis] // length  # channels of one frame
    return Window(
        length=length, outer=math.prod(shape[:axis]), inner=deep * math.prod(shape[axis + 1 :])
    )


def plain(offset: int, size: int) -> Window:
    """Numbers that are stored as they are."""
    return Window(length=1, offset=offset, inner=size)


def completed(windows: Sequence[Window], size: int) -> tuple[Window, ...]:
    """The windows in order, and plain parts for all numbers between them."""
    parts: list[Window] = []
    at = 0
    for window in sorted(windows, key=lambda w: w.offset):
        if window.offset < at or window.end > size:
            raise UsageError(
                f"{window}: outside of an observation of {size} numbers, or over another window. "
                "Declare windows that fit the observation space"
            )
        if window.offset > at:
            parts.append(plain(at, window.offset - at))
        parts.append(window)
        at = window.end
    if at < size:
        parts.append(plain(at, size - at))
    return tuple(parts)


def detect(before: Array, after: Array) -> tuple[Window, ...]:
    """The windows that explain many pairs of consecutive observations of the same episode.

    Equality is of bits. What is found is a guess that saves memory, no more: the timeline
    compares every observation with what it would rebuild.
    """
    shape = before.shape[1:]
    if not len(before) or not shape or math.prod(shape) < SHORTEST:
        return ()
    changed = (bits(before) != bits(after)).reshape(len(before), -1).any(axis=1)
    if not changed.any():
        return ()
    b, a = bits(before[changed]), bits(after[changed])
    if len(shape) > 1:
        best = min(_along_axes(b, a), key=lambda w: (w.new / w.length, w.length), default=None)
        if best is not None:
            return (best,)
    flat_b, flat_a = b.reshape(len(b), -1), a.reshape(len(a), -1)
    return tuple(_in_stretch(flat_b, flat_a, 0, flat_b.shape[1], MOST_PARTS))


def bits(values: Array) -> Array:
    """The same memory as unsigned integers, so that NaN and -0.0 compare as what they are."""
    return values.view(np.dtype(f"u{values.dtype.itemsize}"))


def _along_axes(before: Array, after: Array) -> Iterator[Window]:
    """Windows over one axis of the whole observation."""
    shape = before.shape[1:]
    for axis, length in enumerate(shape):
        outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
        b = before.reshape(len(before), outer, length, inner)
        a = after.reshape(len(after), outer, length, inner)
        for newest_first in (False, True):
            old, now = (a, b) if newest_first else (b, a)
            for new in range(1, length * 3 // 4 + 1):  # less in common is not worth it
                # One row first: most shifts end here.
                if not np.array_equal(now[:1, :, 0], old[:1, :, new]):
                    continue
                if np.array_equal(now[:, :, : length - new], old[:, :, new:]):
                    yield _found(outer, length, inner, new, newest_first)
                    break


def _in_stretch(before: Array, after: Array, at: int, end: int, most: int) -> Iterator[Window]:
    """Windows of a flat vector between two places, the largest first, then beside it."""
    found = _largest(before[:, at:end], after[:, at:end]) if most and end - at >= SHORTEST else None
    if found is None:
        return
    window = replace(found, offset=found.offset + at)
    yield window
    yield from _in_stretch(before, after, at, window.offset, most // 2)
    yield from _in_stretch(before, after, window.end, end, most // 2)


def _largest(before: Array, after: Array) -> Window | None:
    """The window of a flat vector that saves the most numbers."""
    best: Window | None = None
    saved = SHORTEST - 1
    pair = int(np.argmax((before != after).sum(axis=1)))  # the pair that says the most
    moved = (before != after).any(axis=0)
    size = before.shape[1]
    for newest_first in (False, True):
        old, now = (after, before) if newest_first else (before, after)
        for new in range(1, min(size, max(MOST_NUMBERS // size, 2))):
            if size - new <= saved:
                break
            alike = now[pair, : size - new] == old[pair, new:]
            if np.count_nonzero(alike) <= saved or _longest(alike)[1] <= saved:
                continue
            same = (now[:, : size - new] == old[:, new:]).all(axis=0)
            start, run = _longest(same)
            if run <= saved or np.count_nonzero(moved[start : start + run + new]) < 2:
                continue
            if not moved[start : start + run].any():
                continue  # numbers that never change prove no movement
            period = run + new
            times = 1
            while same[start + times * period :][:run].sum() == run:
                times += 1
            if run * times > saved:
                saved = run * times
                best = _found(times, period, 1, new, newest_first, start)
    return best


def _found(
    outer: int, length: int, inner: int, new: int, newest_first: bool, offset: int = 0
) -> Window:
    """A window whose new rows are one row each step, where nothing lies between them."""
    deep = new if outer == 1 and length % new == 0 else 1
    return Window(
        length=length // deep,
        offset=offset,
        inner=inner * deep,
        outer=outer,
        new=new // deep,
        newest_first=newest_first,
    )


def _longest(same: Array) -> tuple[int, int]:
    """Where the longest run of True begins, and its length."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], same, [False])).view(np.int8)))
    if not len(edges):
        return 0, 0
    lengths = edges[1::2] - edges[::2]
    i = int(np.argmax(lengths))
    return int(edges[2 * i]), int(lengths[i])
