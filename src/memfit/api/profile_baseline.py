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
    return found
