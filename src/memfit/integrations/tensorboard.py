"""A recording as event files of TensorBoard, beside the curves of the same training."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from memfit.errors import MissingExtra, UsageError
from memfit.model import Reading, Trace

_TAG = "memfit"
_ENDING = ".memfit"


def write_events(trace: Trace, name: str, folder: Path, *, force: bool = False) -> Path:
    """Write an event file of a run into a folder, which may be the one of its training.

    The steps are those of the environment where the run told them, else seconds since its start.
    """
    try:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.record_writer import RecordWriter
    except ImportError:
        raise MissingExtra(
            "TensorBoard is not installed: pip install 'memfit[tensorboard]', or export --to csv"
        ) from None
    place = folder / f"events.out.tfevents.{int(trace.started)}.{name}{_ENDING}"
    if place.exists() and not force:
        raise UsageError(f"{place} is there already: add --force to replace it")
    new = place.with_name(f".{place.name}.{os.getpid()}")  # TensorBoard never sees half a file
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with new.open("wb") as file:
            writer: Any = RecordWriter(file)
            head = Event(wall_time=trace.started, file_version="brain.Event:2")
            writer.write(head.SerializeToString())
            for seconds, step, values in _points(trace):
                summary = Summary(
                    value=[Summary.Value(tag=tag, simple_value=v) for tag, v in values.items()]
                )
                event = Event(wall_time=trace.started + seconds, step=step, summary=summary)
                writer.write(event.SerializeToString())
        new.replace(place)
    except OSError as error:
        raise UsageError(
            f"cannot write {place}: {error.strerror}. Choose another folder"
        ) from error
    finally:
        with suppress(OSError):
            new.unlink()
    return place


def _points(trace: Trace) -> Iterator[tuple[float, int, dict[str, float]]]:
    """What is known at each moment: of the run, and of each of its processes."""
    in_steps = any(reading.step is not None for reading in trace.readings)
    step = 0
    members = {m.pid: _member_tag(trace, m.pid) for m in trace.members}
    held = deque(sorted((r.seconds, m.pid, r.bytes) for m in trace.members for r in m.readings))
    for reading in trace.readings:
        while held and held[0][0] <= reading.seconds:
            seconds, pid, amount = held.popleft()
            yield seconds, step, {members[pid]: float(amount)}
        step = _step(reading, step, in_steps=in_steps)
        yield reading.seconds, step, _totals(trace, reading)
    for seconds, pid, amount in held:
        yield seconds, step, {members[pid]: float(amount)}


def _totals(trace: Trace, reading: Reading) -> dict[str, float]:
    found = {
        f"{_TAG}/total_pss_bytes": float(reading.bytes),
        f"{_TAG}/processes": float(reading.processes),
        f"{_TAG}/threads": float(reading.threads),
    }
    if trace.limit is not None:
        found[f"{_TAG}/limit_bytes"] = float(trace.limit.bytes)
    return found


def _step(reading: Reading, before: int, *, in_steps: bool) -> int:
    """Never one below the last: TensorBoard would take that for a new start of the run."""
    now = reading.step if in_steps else int(reading.seconds)
    return before if now is None else max(before, now)


def _member_tag(trace: Trace, pid: int) -> str:
    return f"{_TAG}/pss_bytes/{'main' if pid == trace.pid else 'worker'}_{pid}"
