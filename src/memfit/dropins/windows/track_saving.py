"""Tracks in files: what is filled, row by row, and nothing else."""

from __future__ import annotations

from collections import deque
from dataclasses import asdict
from typing import Any

import numpy as np

from memfit.dropins.windows.compressed import CompressedStrip
from memfit.dropins.windows.lane import Lane
from memfit.dropins.windows.layout import Window
from memfit.dropins.windows.saving import Reader, Writer
from memfit.dropins.windows.strip import RawStrip
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
        for extents in lane._extents:
            for begin, rows in extents:
                _write_extent(lane, begin, _used(lane, extents, begin, rows), writer)


def read_track(track: Track, header: Json, reader: Reader) -> None:
    """Fill an empty track from a file."""
    track._lay_out([w for w in (Window(**part) for part in header["parts"]) if w.moves])
    if [asdict(p) for p in track.parts] != header["parts"]:
        track._lay_out([Window(**part) for part in header["parts"]])
    track.starts = track.starts.astype(header["starts"])
    filled = header["filled"]
    for row in track.starts.reshape(-1, *track.starts.shape[2:]):
        reader.into(row[:filled])
    for lane, saved in zip(track.lanes, header["lanes"], strict=True):
        _read_lane(lane, saved, reader)
    track.written, track._next = header["written"], header["next"]


def _lane_header(lane: Lane) -> Json:
    strip = lane.strip
    if isinstance(strip, CompressedStrip):
        state: Json = {"extent": strip.extent, "taken": strip._taken, "free": strip._free}
    else:
        assert isinstance(strip, RawStrip)
        state = {"top": strip._top, "free": {str(k): v for k, v in strip._free.items()}}
    return {
        "extent": lane.extent,
        "end": lane._end.tolist(),
        "limit": lane._limit.tolist(),
        "begun": lane._begun.tolist(),
        "strip": state,
        "extents": [
            [
                {"begin": b, "rows": r, "used": _used(lane, extents, b, r), **_packed(lane, b)}
                for b, r in extents
            ]
            for extents in lane._extents
        ],
    }


def _used(lane: Lane, extents: deque[tuple[int, int]], begin: int, rows: int) -> int:
    """Rows that were written: an env's last extent is not full yet."""
    if begin != extents[-1][0]:
        return rows
    env = next(i for i, e in enumerate(lane._extents) if e is extents)
    return max(0, min(rows, int(lane._end[env]) - begin))


def _packed(lane: Lane, begin: int) -> Json:
    strip = lane.strip
    if not isinstance(strip, CompressedStrip):
        return {}
    number = begin // strip.extent
    if number not in strip._packed:
        return {}
    return {"blocks": len(strip._packed[number]), "sealed": strip._rows[number]}


def _write_extent(lane: Lane, begin: int, used: int, writer: Writer) -> None:
    strip = lane.strip
    if isinstance(strip, RawStrip):
        writer.piece(strip._rows(1)[begin : begin + used])
        return
    assert isinstance(strip, CompressedStrip)
    number = begin // strip.extent
    if number in strip._open:
        writer.piece(strip._open[number][:used])
    else:
        for block in strip._packed[number]:
            writer.piece(block)


def _read_lane(lane: Lane, saved: Json, reader: Reader) -> None:
    strip, state = lane.strip, saved["strip"]
    lane.extent = saved["extent"]
    if isinstance(strip, RawStrip):
        strip.take(state["top"])
        strip._free = {int(k): list(v) for k, v in state["free"].items()}
    else:
        assert isinstance(strip, CompressedStrip)
        strip.extent, strip._taken, strip._free = state["extent"], state["taken"], state["free"]
    for env, extents in enumerate(saved["extents"]):
        for extent in extents:
            begin, rows = extent["begin"], extent["rows"]
            lane._extents[env].append((begin, rows))
            _read_extent(strip, extent, reader)
        if extents:
            first = lane._extents[env][0]
            lane._oldest[env], lane._oldest_end[env] = first[0], sum(first)
    lane._end[:] = saved["end"]
    lane._limit[:] = saved["limit"]
    lane._begun[:] = saved["begun"]


def _read_extent(strip: RawStrip | CompressedStrip, extent: Json, reader: Reader) -> None:
    begin, rows, used = extent["begin"], extent["rows"], extent["used"]
    if isinstance(strip, RawStrip):
        reader.into(strip._rows(1)[begin : begin + used])
        return
    number = begin // strip.extent
    if "blocks" in extent:
        strip._packed[number] = [reader.raw() for _ in range(extent["blocks"])]
        strip._rows[number] = extent["sealed"]
    else:
        raw = np.empty((rows, strip.part.outer, strip.part.inner), strip.unit)
        strip._open[number] = raw
        reader.into(raw[:used])
