"""Tracks in files: what is filled, row by row, and nothing else."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from memfit.dropins.windows.lane import Lane
from memfit.dropins.windows.layout import Window
from memfit.dropins.windows.saving import Reader, Writer
from memfit.dropins.windows.track import Track
from memfit.errors import UsageError

Json = dict[str, Any]


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
    }


def write_track(track: Track, writer: Writer, filled: int) -> None:
    """All its rows, and where windows begin."""
    for row in track.starts.reshape(-1, *track.starts.shape[2:]):
        writer.piece(row[:filled])
    for lane in track.lanes:
        for env in range(lane.n_envs):
            for begin, _, used in _extents(lane, env):
                for piece in lane.strip.pieces(begin, used):
                    writer.piece(piece)


def read_track(track: Track, header: Json, reader: Reader) -> None:
    """Fill an empty track from a file."""
    track._lay_out([Window(**part) for part in header["parts"]])
    track.starts = track.starts.astype(header["starts"])
    for row in track.starts.reshape(-1, *track.starts.shape[2:]):
        reader.into(row[: header["filled"]])
    for lane, saved in zip(track.lanes, header["lanes"], strict=True):
        _read_lane(lane, saved, reader)
    track.written, track._next = header["written"], header["next"]


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


def _read_lane(lane: Lane, saved: Json, reader: Reader) -> None:
    lane.extent = saved["extent"]
    lane.strip.restore(saved["strip"])
    for env, extents in enumerate(saved["extents"]):
        for extent in extents:
            lane._extents[env].append((extent["begin"], extent["rows"]))
            lane.strip.read_extent(extent, reader)
        if extents:
            first = lane._extents[env][0]
            lane._oldest[env], lane._oldest_end[env] = first[0], sum(first)
    lane._end[:] = saved["end"]
    lane._limit[:] = saved["limit"]
    lane._begun[:] = saved["begun"]
