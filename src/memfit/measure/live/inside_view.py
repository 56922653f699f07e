"""What a process tells of its holders, with what the kernel says is resident of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from memfit.measure.kernel.process_memory import ProcessMemory, cut
from memfit.measure.live.listener_client import NO_ROLES, ask
from memfit.model import HeldArrays, HeldObjects, ProcessView, Repeated, Told
from memfit.units import format_bytes


def look_inside(
    view: ProcessView, *, duplicates: bool, timeout: float, roles: Mapping[str, str] = NO_ROLES
) -> Told | None:
    """What a process tells about itself; None where nobody listens."""
    answer = ask(view.pid, duplicates=duplicates, timeout=timeout, roles=roles)
    if answer is None:
        return None
    edges = {edge for part in view.parts for span in part.spans for edge in span}
    with ProcessMemory(view.pid) as memory:
        arrays = tuple(_arrays(row, edges, memory) for row in answer["arrays"])
    return Told(
        pid=view.pid,
        arrays=arrays,
        objects=tuple(_objects(row) for row in answer["python"]),
        repeated=tuple(_repeated(row) for row in answer["duplicates"]),
        free=int(answer["pools"]["malloc"].get("free_bytes", 0)),
        seconds=float(answer["walk"]["cpu_seconds"]),
        longest_hold_seconds=float(answer["walk"]["longest_hold_seconds"]),
        pools=dict(_flat(answer["pools"])),
        notes=tuple(_notes(answer["walk"])),
    )


def _arrays(row: Mapping[str, Any], edges: Collection[int], memory: ProcessMemory) -> HeldArrays:
    shape = "x".join(str(n) for n in row["shape"])
    of = f"{row['count']:,} of {row['library']}, the largest " if row["count"] > 1 else ""
    what = f"{of}{row['dtype']} {shape}" if shape else f"{of}{row['dtype']}"
    if row["memory"] != "own":
        what += f" in {row['memory']} memory {row.get('mapping') or ''}".rstrip()
    return HeldArrays(
        path=row["holder"],
        bytes=int(row["nbytes"]),
        count=int(row["count"]),
        what=what,
        own=row["memory"] == "own" and row["device"] == "cpu",
        blocks=tuple(
            (start, memory.resident(start, end) if memory.readable else end - start)
            for address, size in row["extents"]
            for start, end in cut((address, address + size), edges)
        ),
        small=int(row["small_bytes"]),
        also=tuple(row["also"]),
    )


def _objects(row: Mapping[str, Any]) -> HeldObjects:
    return HeldObjects(
        path=row["holder"],
        of_run=row["kind"] == "run",
        reached=row["kind"] != "unreached",
        small=int(row["small_bytes"]),
        large=int(row["large_bytes"]),
        count=int(row["objects"]),
        elements=int(row.get("elements") or 0),
    )


def _repeated(row: Mapping[str, Any]) -> Repeated:
    return Repeated(
        kind=row["kind"],
        holders=tuple(row["holders"]),
        saves_bytes=int(row["saved_bytes"]),
        message=row["evidence"],
    )


def _notes(walk: Mapping[str, Any]) -> Iterator[str]:
    if (added := int(walk.get("added_bytes") or 0)) >= 2**20:
        yield f"answering left {format_bytes(added)} more in the process than before"
    if not walk.get("complete", True):
        yield "the walk ended before it had seen all objects: what is missing counts as native"


def _flat(pools: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, int]]:
    """All whole numbers of nested figures, by dotted names."""
    for name, value in pools.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        elif isinstance(value, int) and not isinstance(value, bool):
            yield f"{prefix}{name}", value
