"""A recording as a table for spreadsheets and data frames: a row for each reading."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from memfit.errors import visible_line
from memfit.model import Trace

COLUMNS = (
    *("seconds", "unix_seconds", "scope", "pid", "name", "pss_bytes", "limit_bytes"),
    *("processes", "threads", "step", "phase"),
)
_FORMULA = ("=", "+", "-", "@")  # with which a spreadsheet takes a cell for something to work out


def trace_csv(trace: Trace) -> str:
    """The readings of the run (`total`) and of its processes (`main`, `worker`), by time."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    # By time, the run before its processes: rows of one moment keep the order in which they come.
    rows = sorted(_rows(trace), key=lambda row: row[0])
    writer.writerows(cells for _, cells in rows)
    return text.getvalue()


def _rows(trace: Trace) -> Iterator[tuple[float, tuple[object, ...]]]:
    limit = trace.limit.bytes if trace.limit else ""
    phases = iter(_phases(trace))
    phase, following = "", next(phases, None)
    for reading in trace.readings:
        while following is not None and following[0] <= reading.seconds:
            phase, following = following[1], next(phases, None)
        step = "" if reading.step is None else reading.step
        at = _times(trace, reading.seconds)
        counts = (reading.processes, reading.threads)
        yield at[0], (*at, "total", "", "", reading.bytes, limit, *counts, step, phase)
    for member in trace.members:
        scope = "main" if member.pid == trace.pid else "worker"
        for reading in member.readings:
            at = _times(trace, reading.seconds)
            own = (scope, member.pid, _cell(member.name), reading.bytes)
            yield at[0], (*at, *own, *[""] * 5)


def _times(trace: Trace, seconds: float) -> tuple[float, float]:
    return round(seconds, 3), round(trace.started + seconds, 3)


def _phases(trace: Trace) -> list[tuple[float, str]]:
    return sorted((e.seconds, _cell(e.text)) for e in trace.events if e.kind == "phase")


def _cell(text: str) -> str:
    """A text that no spreadsheet works out."""
    shown = visible_line(text)
    return f"'{shown}" if shown.startswith(_FORMULA) else shown
