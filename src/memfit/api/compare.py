"""`compare`: two recordings or results, what grew and what shrank; and how a recording goes on."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from memfit.errors import UsageError
from memfit.model import Comparison, Forecast, Trace


def compare(before: Path | str, after: Path | str) -> Comparison:
    """Compare two files: recordings of `memfit run`, or JSON of `plan`, `explain` and others."""
    from memfit.analyses import compare as comparing

    return comparing.compare(_result(Path(before)), _result(Path(after)))


def recorded(path: Path | str) -> tuple[Trace, Forecast]:
    """A recording, and how its memory went on at its end."""
    from memfit.measure.record.recording import load

    trace = load(Path(path))
    return trace, outlook(trace)


def outlook(trace: Trace) -> Forecast:
    """How the memory of a recorded run went on at its end."""
    from memfit.analyses.forecast import forecast

    return forecast(trace.readings, trace.limit.bytes if trace.limit else None)


def _result(path: Path) -> tuple[str, int, dict[str, int]]:
    from memfit.measure.record.recording import is_recording, load

    if not path.is_file():
        raise UsageError(f"there is no file {path}: give a recording, or a result as JSON")
    if is_recording(path):
        trace = load(path)
        ledger, peak = trace.peak_ledger, trace.peak
        rows = [(c.name, ledger.bytes_of(c)) for c in ledger.components] if ledger else []
        return str(path), peak.bytes if peak else 0, _rows(rows)
    try:
        return _from_json(path, json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise UsageError(
            f"{path} is neither a recording nor a result: give a file of `memfit run`, or one "
            "written with --format json -o FILE"
        ) from None


def _from_json(path: Path, data: dict[str, Any]) -> tuple[str, int, dict[str, int]]:
    rows = _rows((str(row["name"]), int(row["bytes"])) for row in data["components"])
    total = data.get("peak_bytes") or data.get("pss_bytes") or sum(rows.values())
    return str(path), int(total), rows


def _rows(rows: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Rows by name. Large blocks are one row: their addresses differ from run to run."""
    found: dict[str, int] = {}
    for name, amount in rows:
        key = "blocks" if name.startswith("blocks.") else name
        found[key] = found.get(key, 0) + amount
    return found
