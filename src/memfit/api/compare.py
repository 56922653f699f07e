"""`compare`: two recordings or results, what grew and what shrank; and how a recording goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from memfit.errors import UsageError
from memfit.model import Comparison, Forecast, Trace
from memfit.model.json_loader import from_json

# What speaks of a run alone on the machine; all others say what was there at the time.
_ALONE = ("plan", "sweep")


def compare(before: Path | str, after: Path | str) -> Comparison:
    """Compare two files: recordings of `memfit run`, or JSON of `plan`, `explain` and others."""
    from memfit.analyses import compare as comparing

    (first, first_kind), (second, second_kind) = _result(Path(before)), _result(Path(after))
    found = comparing.compare(first, second)
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


def outlook(trace: Trace) -> Forecast:
    """How the memory of a recorded run went on at its end."""
    from memfit.analyses.forecast import forecast

    return forecast(trace.readings, trace.limit.bytes if trace.limit else None)


def _result(path: Path) -> tuple[tuple[str, int, dict[str, int]], str]:
    """A result as its name, its peak and its rows, and the command that it is of."""
    from memfit.measure.record.recording_reader import MOST_BYTES, is_recording, load

    if not os.path.isfile(path):  # noqa: PTH113  # a name may be too long
        raise UsageError(f"there is no file {path}: give a recording, or a result as JSON")
    if is_recording(path):
        trace = load(path)
        rows = trace.peak_ledger.row_bytes if trace.peak_ledger else {}
        peak = trace.peak.bytes if trace.peak else 0
        return (str(path), peak, _rows(rows.items())), "run"
    try:
        data = json.loads(path.read_bytes()) if path.stat().st_size <= MOST_BYTES else None
        result = from_json(_Result, data, foreign=True)
    except (OSError, ValueError, TypeError, RecursionError):
        raise UsageError(
            f"{path} is neither a recording nor a result: give a file of `memfit run`, or one "
            "written with --format json -o FILE"
        ) from None
    rows = _rows((row.name, row.bytes) for row in result.components)
    total = result.peak_bytes or result.pss_bytes or sum(rows.values())
    return (str(path), total, rows), result.kind


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

    def __post_init__(self) -> None:
        if not max(abs(self.peak_bytes or 0), abs(self.pss_bytes or 0)) < 2**63:
            raise ValueError("no amount of memory")


def _rows(rows: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Rows by name. Large blocks are one row: their addresses differ from run to run."""
    found: dict[str, int] = {}
    for name, amount in rows:
        key = "blocks" if name.startswith("blocks.") else name
        found[key] = found.get(key, 0) + amount
    return found
