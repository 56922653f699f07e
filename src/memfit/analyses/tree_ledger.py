"""From the parts of a process tree to one ledger whose rows add up to the tree's memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace

from memfit.analyses.attribution import DEALT
from memfit.analyses.compare import changed
from memfit.formulas.shared_rows import measured
from memfit.model import (
    Component,
    Grown,
    Holder,
    Kind,
    Layer,
    Ledger,
    Part,
    Place,
    ProcessView,
    Setting,
    const,
)
from memfit.model.explanation import Dealt
from memfit.units import format_bytes

# Rows of their own for so many libraries, files and blocks; the others are one row together.
MOST_ROWS = 12
LEAST_BYTES = 2**20
MOST_HOLDERS = 40
_POOLS = (("OMP_NUM_THREADS", "OpenMP"), ("OPENBLAS_NUM_THREADS", "BLAS"))

# How the rows of each layer begin, and what they are.
_ROWS = {
    Layer.LIBRARIES: ("libraries", Kind.BASE),
    Layer.FILES: ("files", Kind.FILE),
    Layer.OBJECTS: ("python", Kind.OBJECTS),
    Layer.HEAP: ("malloc", Kind.HEAP),
    Layer.ARENAS: ("malloc", Kind.HEAP),
    Layer.BLOCKS: ("blocks", Kind.LARGE),
    Layer.STACKS: ("stacks", Kind.STACKS),
    Layer.SHARED: ("shared", Kind.BUFFER),
    Layer.KERNEL: ("kernel", Kind.BASE),
    Layer.UNKNOWN: ("unattributed", Kind.UNATTRIBUTED),
}
_MANY = (Layer.LIBRARIES, Layer.FILES, Layer.BLOCKS)
_NAMED_BY_SIZE = tuple(_ROWS[layer][0] for layer in (Layer.LIBRARIES, Layer.FILES))


def tree_ledger(
    processes: Sequence[ProcessView], dealt: Mapping[int, Dealt] | None = None
) -> Ledger:
    """The main process row by row, its workers together by layer, shared memory once for all.

    Processes that told who holds their memory have rows by holder for it.
    """
    if not processes:
        return Ledger(components=())
    main, workers = processes[0], processes[1:]
    told = dealt or {}
    rows = [*_worker_rows(workers, told), *_shared_rows(processes)]
    own = told.get(main.pid)
    if own is None:
        rows += main_rows(main.parts)
    else:
        rows += main_rows([p for p in main.parts if p.layer not in DEALT])
        rows += main_rows([_unclaimed(part) for part in own.left])
        rows += _holder_rows(own.holders)
    rows.sort(key=lambda row: -row.size.evaluate({}))
    return Ledger(components=tuple(rows))


def _unclaimed(part: Part) -> Part:
    """What is left of the heap when all holders have had theirs."""
    if part.layer in (Layer.HEAP, Layer.ARENAS):
        return replace(part, where="smaps less what holders have of it")
    return part


def _holder_rows(holders: Sequence[Holder]) -> Iterator[Component]:
    own = sorted((h for h in holders if h.own and h.bytes), key=lambda h: -h.bytes)
    for holder in own[:MOST_HOLDERS]:
        who = "the process itself" if holder.told else "outside"
        yield _row(holder.path, [holder], f"{who}: {holder.what}", kind=holder.kind)
    if others := own[MOST_HOLDERS:]:
        yield _row("holders.other", others, f"{len(others):,} smaller holders", kind=Kind.ARRAYS)


def named_share(processes: Sequence[ProcessView]) -> float:
    """How much of the tree has a layer."""
    parts = [part for process in processes for part in process.parts]
    total = sum(part.bytes for part in parts)
    unknown = sum(part.bytes for part in parts if part.layer is Layer.UNKNOWN)
    return 1 - unknown / total if total else 1.0


def main_rows(parts: Sequence[Part]) -> Iterator[Component]:
    """A row for each part of the main process; small ones of many are taken together."""
    for layer in Layer:
        own = sorted((p for p in parts if p.layer is layer), key=lambda p: -p.bytes)
        if layer is Layer.SHARED or not own:
            continue
        if layer in _MANY:
            large = [p for p in own[:MOST_ROWS] if p.bytes >= LEAST_BYTES or _hollow(p)]
            others = [p for p in own if p not in large]
            yield from map(_part_row, large)
            if others:
                prefix, kind = _ROWS[layer]
                where = f"smaps: {len(others):,} smaller ones"
                yield _row(f"{prefix}.other", others, where, kind=kind)
        else:
            yield from map(_part_row, own)


def _part_row(part: Part) -> Component:
    """A row of its own, named such as `libraries.libtorch_cpu`."""
    prefix, kind = _ROWS[part.layer]
    name = f"{prefix}.{part.name}" if part.name != "kernel" else "kernel"
    return _row(name, [part], part.where, kind=kind)


def _hollow(part: Part) -> bool:
    """Much address space with little in it: a buffer that is being filled, perhaps."""
    return part.reserved >= 64 * LEAST_BYTES and part.layer is Layer.BLOCKS


def _worker_rows(workers: Sequence[ProcessView], dealt: Mapping[int, Dealt]) -> Iterator[Component]:
    """What several workers hold alike is one row; what has no holder is by layer."""
    holders: dict[str, list[Holder]] = {}
    left: list[Part] = []
    for worker in workers:
        own = dealt.get(worker.pid)
        left += [p for p in worker.parts if own is None or p.layer not in DEALT]
        left += own.left if own is not None else ()
        for holder in own.holders if own is not None else ():
            if holder.own and holder.bytes:
                holders.setdefault(holder.path, []).append(holder)
    largest = sorted(holders.items(), key=lambda item: -sum(h.bytes for h in item[1]))
    for path, rows in largest[:MOST_HOLDERS]:
        most = max(rows, key=lambda holder: holder.bytes)
        who = f"process {most.pid}"
        if len(rows) > 1:
            who = f"{len(rows)} processes, {format_bytes(most.bytes)} in {most.pid}"
        where = f"{who}: {most.what}"
        yield _row(f"workers.{path}", rows, where, kind=Kind.WORKER, place=Place.WORKERS)
    if others := [holder for _, rows in largest[MOST_HOLDERS:] for holder in rows]:
        where = f"{len(others):,} smaller holders"
        yield _row("workers.holders.other", others, where, kind=Kind.WORKER, place=Place.WORKERS)
    for layer in Layer:
        parts = [p for p in left if p.layer is layer]
        if layer is Layer.SHARED or not parts:
            continue
        word = "process" if len(workers) == 1 else "processes"
        where = f"smaps of {len(workers)} {word} below (PSS)"
        name = f"workers.{layer.replace(' ', '_').lower()}"
        yield _row(name, parts, where, kind=Kind.WORKER, place=Place.WORKERS)


def _shared_rows(processes: Sequence[ProcessView]) -> Iterator[Component]:
    """Shared memory by segment, with who maps it."""
    found: dict[str, list[tuple[int, Part]]] = {}
    for process in processes:
        for part in process.parts:
            if part.layer is Layer.SHARED:
                found.setdefault(part.name, []).append((process.pid, part))
    for name, holders in found.items():
        pids = ", ".join(str(pid) for pid, _ in holders[:8]) + (" ..." if len(holders) > 8 else "")
        where = f"smaps: mapped by {len(holders)} of the tree's processes ({pids})"
        parts = [part for _, part in holders]
        row = _row(f"shared.{name}", parts, where, kind=Kind.BUFFER, place=Place.SHARED)
        yield replace(row, reserved=const(max(part.reserved for part in parts)))


def _row(
    name: str,
    held: Sequence[Part | Holder],
    where: str,
    *,
    kind: Kind,
    place: Place = Place.MAIN,
) -> Component:
    return Component(
        name=name,
        kind=kind,
        place=place,
        size=const(sum(one.bytes for one in held)),
        reserved=const(sum(one.reserved for one in held)),
        phases=(),
        evidence=measured(where),
    )


def layers(processes: Sequence[ProcessView]) -> Ledger:
    """One row for each layer of all processes, which every reading has alike."""
    rows = []
    for prefix, kind in dict.fromkeys(_ROWS.values()):
        own = [p for view in processes for p in view.parts if _ROWS[p.layer] == (prefix, kind)]
        rows += [_row(prefix, own, "smaps", kind=kind)] if own else []
    return Ledger(components=tuple(rows))


def grown(before: Ledger, after: Ledger, seconds: float) -> tuple[Grown, ...]:
    """The rows that changed between two readings, the most grown first."""
    first, second = before.row_bytes, after.row_bytes
    both = first.keys() & second.keys()
    rows = changed(_alike(first, both), _alike(second, both))
    return tuple(
        Grown(**vars(row), seconds=seconds) for row in sorted(rows, key=lambda row: -row.bytes)
    )


def _alike(rows: Mapping[str, int], both: Set[str]) -> dict[str, int]:
    """Rows by names that mean the same in both readings.

    Blocks are named by their addresses, which move; a library or file that only one reading has in
    a row of its own is among the others in the other one.
    """
    found: dict[str, int] = {}
    for name, amount in rows.items():
        prefix = name.partition(".")[0]
        key = name
        if prefix == _ROWS[Layer.BLOCKS][0]:
            key = prefix
        elif prefix in _NAMED_BY_SIZE and name not in both:
            key = f"{prefix}.other"
        found[key] = found.get(key, 0) + amount
    return found


def _threads(main: ProcessView, name: str, pool: str, count: int, cores: int) -> Setting:
    """A pool's variable, what it says, and how many threads there are.

    More threads than that were asked for by the program itself, which outdoes the variable.
    """
    told = main.settings.get(name)
    configured = told if told is not None else f"not set: {cores} (cores)"
    allowed = int(told) if told is not None and told.isdecimal() else cores
    if count + 1 > allowed:
        configured += f"; {count + 1} by the program itself"
    used = f"{count} {pool} threads beside the main"
    return Setting(name=name, configured=configured, used=used)


def settings(main: ProcessView, *, cores: int) -> tuple[Setting, ...]:
    """What is configured beside what is used."""
    threads = {pool.name: pool.threads for pool in main.pools}
    stacks = [p for p in main.parts if p.layer is Layer.STACKS]
    arenas = next((p for p in main.parts if p.layer is Layer.ARENAS), None)
    arenas_set = main.settings.get("MALLOC_ARENA_MAX", f"not set: {8 * cores} (8 x cores)")
    found = [_threads(main, name, pool, threads.get(pool, 0), cores) for name, pool in _POOLS]
    found.append(
        Setting(
            name="MALLOC_ARENA_MAX",
            configured=arenas_set,
            used=f"{len(arenas.spans) if arenas else 0} malloc arenas beside the heap",
        )
    )
    reserved, resident = sum(p.reserved for p in stacks), sum(p.bytes for p in stacks)
    found.append(
        Setting(
            name=f"stacks of {main.threads} threads",
            configured=f"{reserved:,} bytes reserved",
            used=f"{resident:,} bytes resident",
        )
    )
    known = {setting.name for setting in found}
    found += [
        Setting(name=name, configured=value, used="")
        for name, value in main.settings.items()
        if name not in known
    ]
    return tuple(found)
