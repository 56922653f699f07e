"""Reads a profile that was saved, to compare with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from memfit.errors import UsageError


def load(file: Path) -> dict[str, Any]:
    """The JSON of an earlier profile. Raises UsageError where it is none."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(
            f"--baseline {file} cannot be read ({error.strerror}): save one with --save-baseline"
        ) from None
    except ValueError:
        found = None
    if not isinstance(found, dict) or found.get("kind") != "profile":
        raise UsageError(f"--baseline {file} is no profile: save one with --save-baseline")
    if not _is_whole(found):
        raise UsageError(f"--baseline {file} was changed or cut: save it anew with --save-baseline")
    return found


def _is_whole(found: dict[str, Any]) -> bool:
    """Whether what is compared has the form in which it is saved."""
    readings, parts = found.get("readings"), found.get("observation")
    if not isinstance(readings, list) or not isinstance(parts, list) or not readings:
        return False
    if not all(isinstance(row, dict) for row in (*readings, *parts)):
        return False
    in_use = all(isinstance(reading.get("in_use"), dict) for reading in readings)
    return in_use and all(isinstance(part.get("key"), str) for part in parts)
