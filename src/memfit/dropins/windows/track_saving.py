"""Tracks in files: what is filled, row by row, and nothing else."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from memfit.dropins.windows.lane import Lane
from memfit.dropins.windows.layout import Array, Window
from memfit.dropins.windows.saving import Reader, SavedExtent, Writer
from memfit.dropins.windows.track import Track
from memfit.errors import UsageError
from memfit.model.json_loader import from_json

Json = dict[str, Any]
NONSENSE = (ValueError, TypeError, LookupError, AttributeError, OverflowError)
_MOST_PARTS = 64
_LOOKED_AT = 16  # steps, the first and the last among them
_STARTS = tuple(np.dtype(kind).str for kind in (np.int32, np.int64))


def track_header(track: Track, filled: int) -> Json:
    """All that is small about a track."""
    if track.closed:
        raise UsageError("this buffer was closed, so there is nothing to save. Save it before")
    return {
        "shape": list(track.shape),
        "dtype": track.dtype.str,
        "parts": [asdict(part) for part in track.parts],
        "written": track.written,
        "next": track._next,
        "filled": filled,
        "starts": track.starts.dtype.str,
        "lanes": [_lane_header(lane) for lane in track.lanes],
        "seen": _seen(track, filled),
    }


def _seen(track: Track, filled: int) -> int:
    """A checksum of some observations as they are read: rows alone do not say how they lie."""
    found = 0
    for step in np.linspace(0, filled - 1, min(filled, _LOOKED_AT)).astype(np.int64).tolist():
        for starts in track.starts[:, :, step]:
            found = zlib.crc32(track.read(starts).data, found)
    return found


def write_track(track: Track, writer: Writer, filled: int) -> None:
    """All its rows, and where windows begin."""
    for row in track.starts.reshape(-1, *track.starts.shape[2:]):
        writer.piece(row[:filled])
    for lane in track.lanes:
        for env in range(lane.n_envs):
            for begin, _, used in _extents(lane, env):
                for piece in lane.strip.pieces(begin, used):
                    writer.piece(piece)


@dataclass(frozen=True, kw_only=True)
class _Lane:
    """What is needed of a lane's header: all else follows from it."""

    extents: tuple[tuple[SavedExtent, ...], ...]
    strip: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class _Track:
    """The same of a track's."""

    parts: tuple[Window, ...]
    starts: str
    lanes: tuple[_Lane, ...]


def read_track(track: Track, header: Json, reader: Reader, pos: int, filled: int) -> None:
    """Fill an empty track from a file, in which `filled` steps are and the next goes to `pos`.

    Raises NONSENSE where the header makes no sense. Little of it is taken
    over: what the track then says of itself must be the same.
    """
    saved = from_json(_Track, header, foreign=True)
    if len(saved.parts) > max(_MOST_PARTS, len(track.parts)):
        raise ValueError("more parts than are found in observations")
    track._lay_out(saved.parts)
    if track.parts != saved.parts or saved.starts not in _STARTS:
        raise ValueError("other parts than the observations have")
    track.starts = track.starts.astype(saved.starts)
    for row in track.starts.reshape(-1, *track.starts.shape[2:]):
        reader.into(row[:filled])
    steps = np.arange(filled)
    in_time = np.roll(steps, -pos) if filled == track.n_steps else steps
    for part, (lane, told) in enumerate(zip(track.lanes, saved.lanes, strict=True)):
        # Of each env: observation, next observation, observation ... in the order of time.
        starts = track.starts[:, part, in_time].transpose(2, 1, 0).reshape(track.n_envs, -1)
        for extents, of_env in zip(told.extents, starts.astype(np.int64), strict=True):
            _check_extents(lane, extents, of_env)
        _read_lane(lane, told, reader, most=_most_extents(lane, track.n_steps))
    track.written, track._next = filled, pos
    if track_header(track, filled) != header:
        raise ValueError("it contradicts itself")


def _lane_header(lane: Lane) -> Json:
    return {
        "extent": lane.extent,
        "end": lane._end.tolist(),
        "limit": lane._limit.tolist(),
        "begun": lane._begun.tolist(),
        "strip": lane.strip.state(),
        "extents": [
            [
                {"begin": b, "rows": r, "used": used, **lane.strip.extent_state(b)}
                for b, r, used in _extents(lane, env)
            ]
            for env in range(lane.n_envs)
        ],
    }


def _extents(lane: Lane, env: int) -> list[tuple[int, int, int]]:
    """Where an env's extents begin, their rows, and those that were written.

    All but the last are full.
    """
    found = [(begin, rows, rows) for begin, rows in lane._extents[env]]
    if found:
        begin, rows, _ = found[-1]
        found[-1] = begin, rows, max(0, min(rows, int(lane._end[env]) - begin))
    return found


def _most_extents(lane: Lane, steps: int) -> int:
    """More than a ring of so many steps ever has, were all its windows stored completely."""
    return lane.n_envs * (4 + 4 * (steps + 1) * lane.part.length // lane.extent)


def _check_extents(lane: Lane, extents: Sequence[SavedExtent], starts: Array) -> None:
    """Refuse extents of an env that do not hold its windows, which never go back in time."""
    if bool(extents) != bool(len(starts)):
        raise ValueError("extents without windows, or windows without extents")
    if not extents:
        return
    length, rows = lane.part.length, lane.extent
    if extents[-1].sealed is not None or any(
        e.rows != rows or not length <= e.held <= rows for e in extents
    ):
        raise ValueError("an extent has other rows than it can have")
    begins, held = np.array([(e.begin, e.held) for e in extents]).T
    by_place = np.argsort(begins)
    number = by_place[np.searchsorted(begins[by_place], starts, side="right") - 1]
    offset = starts - begins[number]
    beyond = offset + length - held[number]
    # A window may go on in the next extent, where that lies beside its own.
    beside = np.append((begins[1:] == begins[:-1] + rows) & (held[:-1] == rows), False)
    inside = (beyond <= 0) | (beside[number] & (beyond <= np.append(held[1:], 0)[number]))
    if offset.min() < 0 or not inside.all() or (np.diff(number * rows + offset) < 0).any():
        raise ValueError("windows do not lie where their rows are")


def _read_lane(lane: Lane, saved: _Lane, reader: Reader, *, most: int) -> None:
    used = [extent.begin for extents in saved.extents for extent in extents]
    lane.strip.restore(saved.strip, used, lane.extent, most)
    for env, extents in enumerate(saved.extents):
        for extent in extents:
            lane._extents[env].append((extent.begin, extent.rows))
            lane.strip.read_extent(extent, reader)
        if extents:
            first, last = extents[0], extents[-1]
            lane._oldest[env], lane._oldest_end[env] = first.begin, first.begin + first.rows
            lane._end[env], lane._limit[env] = last.begin + last.used, last.begin + last.rows
            lane._begun[env] = True
