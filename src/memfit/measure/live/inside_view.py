"""What a process tells of its holders, with what the kernel says is resident of it.

The answer comes from a process that may be anything: every value of it is checked, and what makes
no sense is refused as a whole.
"""

from __future__ import annotations

import reprlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memfit.measure.kernel.proc import figure
from memfit.measure.kernel.process_memory import ProcessMemory, cut
from memfit.measure.live.listener_client import NO_ROLES, NoAnswer, ask
from memfit.model import HeldArrays, HeldObjects, ProcessView, Repeated, Told
from memfit.model.json_loader import from_json
from memfit.units import format_bytes

_MOST = 2**63
_LONGEST = 2**14  # characters of a name
_MOST_ROWS = 5000  # a process tells of 200 holders, and sums up the others
_ADDRESSES = 2**57  # of any process
_GRAPH = " graph"  # what a tensor's history keeps for a backward pass


class _Checked:
    """A part of an answer: no number is below zero or beyond all memory, no text has no end."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            for part in value if isinstance(value, tuple) else (value,):
                number, most = (len(part), _LONGEST) if isinstance(part, str) else (part, _MOST)
                if isinstance(number, (int, float)) and not 0 <= number < most:
                    raise ValueError(f"{name} cannot be {reprlib.repr(part)}")


@dataclass(frozen=True, kw_only=True)
class _Arrays(_Checked):
    """A row of arrays, as `memfit.inside` tells it."""

    holder: str
    nbytes: int
    count: int
    dtype: str
    shape: tuple[int, ...]
    library: str
    device: str
    memory: str
    mapping: str = ""
    extents: tuple[tuple[int, int], ...]
    small_bytes: int
    also: tuple[str, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        for address, amount in self.extents:
            if not 0 <= address < address + amount <= _ADDRESSES:
                raise ValueError("extents beyond all addresses")


@dataclass(frozen=True, kw_only=True)
class _Objects(_Checked):
    """A row of Python objects."""

    holder: str
    kind: str
    small_bytes: int
    large_bytes: int
    objects: int
    elements: int = 0


@dataclass(frozen=True, kw_only=True)
class _Duplicate(_Checked):
    """A finding of repeated data."""

    kind: str
    holders: tuple[str, ...]
    saved_bytes: int
    evidence: str


@dataclass(frozen=True, kw_only=True)
class _Walk(_Checked):
    """What telling took."""

    cpu_seconds: float
    longest_hold_seconds: float
    added_bytes: int
    complete: bool


@dataclass(frozen=True, kw_only=True)
class _Answer:
    """All of it."""

    arrays: tuple[_Arrays, ...]
    python: tuple[_Objects, ...]
    duplicates: tuple[_Duplicate, ...]
    pools: Mapping[str, Mapping[str, Any]]
    walk: _Walk

    def __post_init__(self) -> None:
        if max(map(len, (self.arrays, self.python, self.duplicates))) > _MOST_ROWS:
            raise ValueError(f"more than {_MOST_ROWS:,} rows")


def look_inside(
    view: ProcessView, *, duplicates: bool, timeout: float, roles: Mapping[str, str] = NO_ROLES
) -> Told | None:
    """What a process tells about itself; None where nobody listens. Raises NoAnswer."""
    found = ask(view.pid, duplicates=duplicates, timeout=timeout, roles=roles)
    return None if found is None else told_by(view, found)


def told_by(view: ProcessView, found: dict[str, Any]) -> Told:
    """An answer about a process, checked, with what of it is resident. Raises NoAnswer."""
    try:
        answer = from_json(_Answer, found, foreign=True)
        pools = dict(_flat(answer.pools))
    except (ValueError, TypeError, RecursionError) as error:
        raise NoAnswer(f"it answered with nonsense ({str(error)[:200]})") from None
    told = sum(amount for row in answer.arrays for _, amount in row.extents)
    if told > 2 * max(view.reserved, 1024 * (figure(f"/proc/{view.pid}/status", "VmSize:") or 0)):
        raise NoAnswer(f"it told of {format_bytes(told)} in arrays, more than it can address")
    edges = sorted({edge for part in view.parts for span in part.spans for edge in span})
    with ProcessMemory(view.pid) as memory:
        arrays = tuple(_arrays(row, edges, memory) for row in answer.arrays)
    return Told(
        pid=view.pid,
        arrays=arrays,
        objects=tuple(_objects(row) for row in answer.python),
        repeated=tuple(_repeated(row) for row in answer.duplicates),
        free=pools.get("malloc.free_bytes", 0),
        seconds=answer.walk.cpu_seconds,
        longest_hold_seconds=answer.walk.longest_hold_seconds,
        pools=pools,
        notes=tuple(_notes(answer.walk)),
        complete=answer.walk.complete,
    )


def _arrays(row: _Arrays, edges: Sequence[int], memory: ProcessMemory) -> HeldArrays:
    shape = "x".join(str(n) for n in row.shape)
    of = f"{row.count:,} of {row.library}, the largest " if row.count > 1 else ""
    what = f"{of}{row.dtype} {shape}" if shape else f"{of}{row.dtype}"
    if row.holder.endswith(_GRAPH):
        what = f"kept graph: {what}"
    if row.memory != "own":
        what += f" in {row.memory} memory {row.mapping}".rstrip()
    return HeldArrays(
        path=row.holder,
        bytes=row.nbytes,
        count=row.count,
        what=what,
        own=row.memory == "own" and row.device == "cpu",
        blocks=tuple(
            (start, memory.resident(start, end) if memory.readable else end - start)
            for address, amount in row.extents
            for start, end in _pieces(address, address + amount, edges)
        ),
        small=row.small_bytes,
        also=row.also,
    )


def _pieces(start: int, end: int, edges: Sequence[int]) -> list[tuple[int, int]]:
    """A stretch cut where mappings begin or end."""
    return cut((start, end), edges[bisect_right(edges, start) : bisect_left(edges, end)])


def _objects(row: _Objects) -> HeldObjects:
    return HeldObjects(
        path=row.holder,
        of_run=row.kind == "run",
        reached=row.kind != "unreached",
        small=row.small_bytes,
        large=row.large_bytes,
        count=row.objects,
        elements=row.elements,
    )


def _repeated(row: _Duplicate) -> Repeated:
    return Repeated(
        kind=row.kind, holders=row.holders, saves_bytes=row.saved_bytes, message=row.evidence
    )


def _notes(walk: _Walk) -> Iterator[str]:
    if walk.added_bytes >= 2**20:
        yield f"answering left {format_bytes(walk.added_bytes)} more in the process than before"
    if not walk.complete:
        yield "the walk ended before it had seen all objects: what is missing counts as native"


def _flat(pools: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, int]]:
    """All whole numbers of nested figures, by dotted names."""
    for name, value in pools.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        elif isinstance(value, int) and not isinstance(value, bool):
            if not 0 <= value < _MOST:
                raise ValueError(f"{prefix}{name} cannot be {reprlib.repr(value)}")
            yield f"{prefix}{name}", value
