"""`compare`: two recordings or results, what grew and what shrank; and how a recording goes on."""

from __future__ import annotations

import json
import os
import reprlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from memfit.errors import UsageError
from memfit.model import Comparison, Course, Forecast, Limit, Trace, fewer_points, lasting_name
from memfit.model.json_loader import from_json
from memfit.render import is_report, read_report

_Named = tuple[str, int, dict[str, int]]  # a result's name, its peak and its rows
_MOST_READINGS = 4000  # of a curve that is drawn
# What speaks of a run alone on the machine; all others say what was there at the time.
_ALONE = ("plan",)
# Results that have a total and rows; the first of them does not say what it is.
_KINDS = ("", *_ALONE, "explain", "recording", "watch")


def compare(before: Path | str, after: Path | str) -> Comparison:
    """Compare two files: recordings of `memfit run`, or JSON of `plan`, `explain` and others."""
    from memfit.analyses import compare as comparing

    first, first_kind, first_course = _result(Path(before))
    second, second_kind, second_course = _result(Path(after))
    found = replace(
        comparing.compare(first, second), before_course=first_course, after_course=second_course
    )
    if (first_kind in _ALONE) == (second_kind in _ALONE):
        return found
    alone, there = (before, after) if first_kind in _ALONE else (after, before)
    note = (
        f"both are sums of PSS, but {alone} is of a run alone on the machine: where {there} was "
        "read beside other processes that map the same libraries, it has only its part of them"
    )
    return replace(found, notes=(note,))


def recorded(path: Path | str) -> tuple[Trace, Forecast]:
    """A recording, and how its memory went on at its end."""
    from memfit.measure.record.recording_reader import load

    trace = load(Path(path))
    return trace, outlook(trace)


def outlook(trace: Trace, limit: Limit | None = None) -> Forecast:
    """How the memory of a recorded run goes on; of one that has ended, how it went."""
    from memfit.analyses.forecast import forecast, verdict

    judge = forecast if trace.exit_code is None else verdict
    bound = limit or trace.limit
    return judge(trace.readings, bound.bytes if bound else None, trace.members)


def _result(path: Path) -> tuple[_Named, str, Course]:
    """A result as its name, its peak and its rows, the command that it is of, and its course."""
    from memfit.measure.record.recording import is_recording
    from memfit.measure.record.recording_reader import MOST_BYTES, load

    if not os.path.isfile(path):  # noqa: PTH113  # a name may be too long
        raise UsageError(f"there is no file {path}: give a recording, or a result as JSON")
    if is_recording(path):
        trace = load(path)
        rows = trace.peak_ledger.row_bytes if trace.peak_ledger else {}
        peak = trace.peak.bytes if trace.peak else 0
        course = _course([(r.seconds, r.bytes) for r in trace.readings])
        return _with_memory(path, peak, _rows(rows.items())), "recording", course
    try:
        data = _data(path) if path.stat().st_size <= MOST_BYTES else None
        _check_schema(path, data)
        result = from_json(_Result, data, foreign=True)
    except (OSError, ValueError, TypeError, RecursionError):
        raise UsageError(
            f"{path} is neither a recording nor a result: give a file of `memfit run`, or one "
            "written with --format json -o FILE, or html"
        ) from None
    rows = _rows((row.name, row.bytes) for row in result.components)
    total = result.peak_bytes or result.pss_bytes or sum(rows.values())
    course = _course(list(result.readings), result.phases)
    return _with_memory(path, total, rows), result.kind, course


def _data(path: Path) -> Any:
    """What a result has for programs, from its JSON or from the report that carries it."""
    text = path.read_bytes()
    return read_report(text).data if is_report(text) else json.loads(text)


def _course(readings: list[tuple[float, int]], phases: Mapping[str, int] | None = None) -> Course:
    kept = fewer_points(readings, _MOST_READINGS, lambda reading: reading[1])
    return Course(readings=tuple(kept), phases=phases or {})


def _check_schema(path: Path, data: Any) -> None:
    """Refuse a result of a newer memfit, whose other values may mean anything."""
    from memfit.render.result_json import SCHEMA

    schema = data.get("schema", SCHEMA) if isinstance(data, dict) else SCHEMA
    if type(schema) is not int or schema < 1:
        raise ValueError("no schema")
    if schema > SCHEMA:
        raise UsageError(
            f"{path} was written by a newer memfit (schema {reprlib.repr(schema)}, known up to "
            f"{SCHEMA}): update memfit"
        )


def _with_memory(path: Path, total: int, rows: dict[str, int]) -> _Named:
    """A result; one without a reading is refused, since all else would have grown against it."""
    if total <= 0:
        raise UsageError(
            f"{path} has no reading: the run, or memfit, ended before its memory could be read. "
            "Record the run again, and compare that"
        )
    return str(path), total, rows


@dataclass(frozen=True, kw_only=True)
class _Part:
    """A row of a result, as its JSON has it."""

    name: str
    bytes: int

    def __post_init__(self) -> None:
        if not abs(self.bytes) < 2**63:
            raise ValueError("no amount of memory")


@dataclass(frozen=True, kw_only=True)
class _Result:
    """What every result has that can be compared."""

    kind: str = ""
    components: tuple[_Part, ...]
    peak_bytes: int | None = None
    pss_bytes: int | None = None
    readings: tuple[tuple[float, int], ...] = ()
    phases: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise ValueError("no result that can be compared")
        read = (amount for _, amount in self.readings)
        for total in (self.peak_bytes or 0, self.pss_bytes or 0, *read, *self.phases.values()):
            if not 0 <= total < 2**63:
                raise ValueError("no amount of memory")


def _rows(rows: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Rows by name."""
    found: dict[str, int] = {}
    for name, amount in rows:
        key = lasting_name(name)
        found[key] = found.get(key, 0) + amount
    return found
