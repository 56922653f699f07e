"""`export`: a recording in the forms of other tools."""

from __future__ import annotations

from pathlib import Path

from memfit.model import Trace


def recording(path: Path | str) -> Trace:
    """A recording to export; one that still grows, as far as it is."""
    from memfit.measure.record.recording_reader import load

    return load(Path(path))


def to_tensorboard(path: Path | str, folder: Path | str, *, force: bool = False) -> Path:
    """Write a recording as an event file into a folder, and return the file."""
    from memfit.integrations.tensorboard import write_events

    return write_events(recording(path), Path(path).stem, Path(folder), force=force)
