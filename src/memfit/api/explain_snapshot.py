"""`explain` of a snapshot: what held a card's memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from memfit.device import snapshot_file
from memfit.device.held import explain_card
from memfit.errors import UsageError
from memfit.measure.kernel import limits
from memfit.measure.record.recording import is_recording
from memfit.model.device_explanation import SnapshotExplanation

_ROOM = 0.8  # of what the machine could still give


def is_snapshot(path: Path | str) -> bool:
    """Whether a file is to be read as a snapshot of torch."""
    return snapshot_file.is_snapshot(Path(path)) and not is_recording(Path(path))


def explain_snapshot(
    path: Path | str, progress: Callable[[str], None] | None = None
) -> SnapshotExplanation:
    """Explain what `torch.cuda.memory._dump_snapshot` wrote."""
    started = time.monotonic()
    room = min(limits.available(), limits.memory_limit().bytes)
    cards = snapshot_file.read_snapshot(Path(path), int(room * _ROOM))
    if not cards:
        raise UsageError(
            f"{path} is a snapshot in which no card has any memory: take it while the training "
            "runs, or where it fails"
        )
    return SnapshotExplanation(
        path=str(path),
        devices=tuple(explain_card(card, progress) for card in cards),
        seconds=time.monotonic() - started,
    )
