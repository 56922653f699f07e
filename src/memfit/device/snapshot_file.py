"""Reads what `torch.cuda.memory._dump_snapshot` wrote, whoever wrote it.

A pickle can name any class and call it. Of a snapshot's, only numbers, texts, lists and
dictionaries are read: a file that names anything else is refused before anything of it runs.
"""

from __future__ import annotations

import pickle
import resource
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

from memfit.errors import UsageError
from memfit.model.device_snapshot import (
    Annotation,
    DeviceBlock,
    DeviceEvent,
    DeviceSegment,
    DeviceSnapshot,
    Stack,
    StackFrame,
)
from memfit.units import MIB, format_bytes

_WHOLE = 2**63
_LONGEST = 2**12  # characters of a path or name
_DEEPEST = 2**10  # calls of a stack
_LEAST_ROOM = 64 * MIB
_HOW = "give a file that torch.cuda.memory._dump_snapshot wrote"
_UNREADABLE = (
    *(pickle.UnpicklingError, EOFError, AttributeError, IndexError, KeyError, TypeError),
    *(ValueError, OverflowError, RecursionError, AssertionError, ImportError),
)


class _Foreign(Exception):
    """A value that no snapshot has."""


class _NoClasses(pickle.Unpickler):
    """Numbers, texts and containers alone."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise _Foreign(f"it names {module}.{name}, which could run anything, and was not loaded")

    def persistent_load(self, pid: Any) -> NoReturn:
        raise _Foreign("it refers to what is kept outside of it")


def is_snapshot(path: Path) -> bool:
    """Whether a file begins as a pickle does, or is named as one."""
    try:
        with path.open("rb") as file:
            head = file.read(2)
    except OSError:
        return False
    named = path.suffix in (".pickle", ".pkl")
    return (len(head) == 2 and head[0] == 0x80 and head[1] <= pickle.HIGHEST_PROTOCOL) or named


def read_snapshot(path: Path, room: int) -> tuple[DeviceSnapshot, ...]:
    """The cards of a snapshot that have anything, read within so many bytes of memory."""
    try:
        size = path.stat().st_size
        if size > room:
            raise UsageError(
                f"{path} has {format_bytes(size)}, and {format_bytes(room)} are free here to read "
                "it: record with a smaller max_entries, or read it on a larger machine"
            )
        with path.open("rb") as file, _at_most(room):
            return _snapshots(_NoClasses(file).load())
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}. Check that it is there") from error
    except MemoryError:
        raise UsageError(
            f"{path} needs more than the {format_bytes(room)} that are free here: {_HOW}, with a "
            "smaller max_entries"
        ) from None
    except _Foreign as error:
        raise UsageError(f"{path} is no snapshot of CUDA memory: {error}. {_then()}") from None
    except _UNREADABLE as error:
        raise UsageError(
            f"{path} cannot be read as a pickle ({type(error).__name__}): it is cut off, or "
            f"something else. {_then()}"
        ) from None


def _then() -> str:
    return _HOW[0].upper() + _HOW[1:]


@contextmanager
def _at_most(room: int) -> Iterator[None]:
    """A few bytes of a pickle can ask for any amount: what goes beyond is a MemoryError."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm", encoding="ascii") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    limit = now + max(room, _LEAST_ROOM)
    if soft != resource.RLIM_INFINITY:
        limit = min(limit, soft)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _snapshots(data: Any) -> tuple[DeviceSnapshot, ...]:
    top = _mapping(data, "it")
    if not isinstance(top.get("segments"), list) or not isinstance(top.get("device_traces"), list):
        raise _Foreign("it has no segments and device_traces")
    stacks = _Stacks()
    segments: dict[int, list[DeviceSegment]] = {}
    for found in top["segments"]:
        row = _mapping(found, "a segment")
        device = _number(row, "device", 0)
        segments.setdefault(device, []).append(_segment(row, stacks))
    events = [
        tuple(_event(e, stacks) for e in _list(trace, "a trace")) for trace in top["device_traces"]
    ]
    settings = top.get("allocator_settings")
    said = dict(settings) if isinstance(settings, Mapping) else {}
    marks = _annotations(top.get("external_annotations"))
    return tuple(
        DeviceSnapshot(
            device=device,
            segments=_apart(segments.get(device, [])),
            events=events[device] if device < len(events) else (),
            settings=said,
            annotations=marks.get(device, ()),
        )
        for device in range(max([len(events), *(d + 1 for d in segments)]))
        if segments.get(device) or (device < len(events) and events[device])
    )


def _segment(row: Mapping[Any, Any], stacks: _Stacks) -> DeviceSegment:
    address, size = _number(row, "address"), _number(row, "total_size")
    blocks, at = [], address
    for found in _list(row.get("blocks"), "blocks of a segment"):
        block = _mapping(found, "a block")
        state, bytes_ = block.get("state"), _number(block, "size")
        # Older versions say no addresses of blocks: one follows the other.
        at = _number(block, "address", at)
        requested = _number(block, "requested_size", bytes_)
        waits = state in ("active_awaiting_free", "active_pending_free")
        if not isinstance(state, str) or at + bytes_ > address + size:
            raise _Foreign("a block lies outside of its segment, or has no state")
        stack = stacks.of(block.get("frames"))
        allocated = state == "active_allocated"
        blocks.append(DeviceBlock(at, bytes_, requested, allocated, waits, stack))
        at += bytes_
    for before, after in pairwise(blocks):
        if before.address + before.size > after.address:
            raise _Foreign("blocks of a segment overlap")
    return DeviceSegment(
        address,
        size,
        _number(row, "stream", 0),
        row.get("segment_type") == "small",
        tuple(blocks),
        expandable=row.get("is_expandable") is True,
        pool=_pool(row.get("segment_pool_id")),
    )


def _apart(segments: list[DeviceSegment]) -> tuple[DeviceSegment, ...]:
    """Segments by address, none of which overlap."""
    ordered = sorted(segments, key=lambda s: s.address)
    for before, after in pairwise(ordered):
        if before.address + before.size > after.address:
            raise _Foreign("its segments overlap")
    return tuple(ordered)


def _event(found: Any, stacks: _Stacks) -> DeviceEvent:
    row = _mapping(found, "an event")
    action = row.get("action")
    if not isinstance(action, str) or len(action) > _LONGEST:
        raise _Foreign("an event has no action")
    return DeviceEvent(
        action,
        _number(row, "addr", 0),
        _number(row, "size", 0),
        _number(row, "stream", 0),
        _pool(row.get("pool_id")),
        stacks.of(row.get("frames")),
        _number(row, "time_us", 0),
        _number(row, "device_free", 0),
    )


def _annotations(found: Any) -> dict[int, tuple[Annotation, ...]]:
    marks: dict[int, list[Annotation]] = {}
    for mark in found if isinstance(found, list) else ():
        row = _mapping(mark, "an annotation")
        name, stage = row.get("name"), row.get("stage")
        if isinstance(name, str) and stage in ("START", "END"):
            made = Annotation(name[:_LONGEST], stage == "START", _number(row, "time_us", 0))
            marks.setdefault(_number(row, "device", 0), []).append(made)
    return {device: tuple(sorted(m, key=lambda a: a.time)) for device, m in marks.items()}


class _Stacks:
    """Stacks that many events share are made once."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[Any, Stack]] = {}

    def of(self, frames: Any) -> Stack:
        if not isinstance(frames, list) or not frames:
            return ()
        known = self._made.get(id(frames))
        if known is None:
            known = self._made[id(frames)] = (frames, tuple(_frames(frames)))
        return known[1]


def _frames(frames: list[Any]) -> Iterator[StackFrame]:
    for found in frames[:_DEEPEST]:
        row = _mapping(found, "a call of a stack")
        file, function = row.get("filename"), row.get("name")
        if not isinstance(file, str) or not isinstance(function, str):
            raise _Foreign("a call of a stack has no file or name")
        yield StackFrame(file[:_LONGEST], _number(row, "line", 0), function[:_LONGEST])


def _pool(found: Any) -> str:
    """The name of a private pool; the common one has none."""
    if not isinstance(found, (tuple, list)) or len(found) != 2 or tuple(found) == (0, 0):
        return ""
    return ",".join(str(_checked(part, "a pool")) for part in found)


def _mapping(found: Any, what: str) -> Mapping[Any, Any]:
    if not isinstance(found, dict):
        raise _Foreign(f"{what} is no dictionary")
    return found


def _list(found: Any, what: str) -> list[Any]:
    if not isinstance(found, list):
        raise _Foreign(f"{what} is no list")
    return found


def _number(row: Mapping[Any, Any], name: str, default: int | None = None) -> int:
    found = row.get(name, default)
    # Streams and streams' handles are signed in some versions.
    return _checked(found, name)


def _checked(found: Any, name: str) -> int:
    if isinstance(found, bool) or not isinstance(found, int) or not -1 <= found < _WHOLE:
        raise _Foreign(f"{name} is no number that a card's memory has")
    return found
