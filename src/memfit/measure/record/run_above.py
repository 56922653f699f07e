"""The recorded run that a live process belongs to, if `memfit run` has started it."""

from __future__ import annotations

from pathlib import Path

from memfit.errors import UsageError
from memfit.measure.children.launch import RECORDING
from memfit.measure.kernel import proc
from memfit.measure.record.recording_reader import load
from memfit.model import Trace


def run_above(pid: int) -> Trace | None:
    """The recording of the run so far; None where there is none, or where it is over.

    A process that another run left behind has its variable still: it must be below the command that
    is recorded, or be that, or be its keeper.
    """
    place = recording_of(pid)
    if place is None:
        return None
    try:
        trace = load(place)
    except UsageError:
        return None
    around = {trace.pid, proc.state_and_parent(trace.pid)[1], *proc.descendants(trace.pid)}
    return trace if trace.exit_code is None and pid in around else None


def recording_of(pid: int) -> Path | None:
    """Where the run that started a process keeps its recording; None where none did."""
    place = proc.environment(pid).get(RECORDING)
    return Path(place) if place else None
