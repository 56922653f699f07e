"""How far a child came, in a file beside its answer: read where it had to be ended."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from memfit.model.json_loader import from_json, to_json
from memfit.model.trial import Progress

PROGRESS = "progress.json"


def write_progress(file: Path, progress: Progress) -> None:
    """Leave word; whoever reads it meanwhile gets the last whole one."""
    partial = file.with_suffix(".part")
    with suppress(OSError):  # a full disk is no reason to end a trial
        partial.write_text(json.dumps(to_json(progress)))
        partial.rename(file)


def read_progress(file: Path) -> Progress | None:
    """The last word that was left, None where there is none."""
    try:
        return from_json(Progress, json.loads(file.read_text()))
    except (OSError, ValueError):
        return None
