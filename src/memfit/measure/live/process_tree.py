"""Reads a live process tree from outside: each process by layer, its threads and its settings."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from math import inf

from memfit.errors import UsageError
from memfit.measure.kernel import proc
from memfit.measure.kernel.process_memory import ProcessMemory, Span
from memfit.measure.live.mapping_layers import Layers, spans_of
from memfit.measure.live.threads import Thread, threads
from memfit.model import Layer, Native, Part, ProcessView, ThreadPool

# Settings that decide about memory, where a process's environment has them.
SETTINGS = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MALLOC_ARENA_MAX",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_TRIM_THRESHOLD_",
    "PYTHONMALLOC",
    "LD_PRELOAD",
)
_FOLLOWING = 1.5  # seconds that are kept for following pointers, of what there is
_KERNEL_THREAD = 0x0020_0000


def read_tree(
    pid: int,
    *,
    children: bool = True,
    numbers: Callable[[int], Sequence[Span] | None] = lambda _: None,
    until: float = inf,
) -> list[ProcessView]:
    """The process and, where asked for, all below it. Raises UsageError for the process itself.

    Where `numbers` are given, pointers are followed through the heap, but for those places, as far
    as that is done by `until`.
    """
    check_readable(pid)
    below = proc.descendants(pid) if children else []
    first = read_process(pid, numbers=numbers(pid), until=until)
    return [first, *read_processes(below, numbers=numbers, until=until)]


def read_processes(
    pids: Sequence[int],
    *,
    numbers: Callable[[int], Sequence[Span] | None] = lambda _: None,
    until: float = inf,
) -> list[ProcessView]:
    """Those of these processes that have not ended and are ours to read."""
    found = []
    for pid in pids:
        with suppress(UsageError):
            found.append(read_process(pid, numbers=numbers(pid), until=until))
    return found


def read_process(pid: int, *, numbers: Sequence[Span] | None, until: float = inf) -> ProcessView:
    """One process, as in `read_tree`. Raises UsageError where it is gone or may not be read."""
    # These load numpy, which those who only ask whether a process is alive do without.
    from memfit.measure.live.arenas import in_arenas
    from memfit.measure.live.native_pointers import follow
    from memfit.measure.live.snapshot import settled

    try:
        with ProcessMemory(pid) as memory:
            now = settled(pid, memory, numbers, until - _FOLLOWING)
            if now is None:
                raise _gone(pid)
            own = threads(pid, now.maps, memory)
            parts = Layers(now.maps, own, memory).parts()
            followed = Native()
            if now.arrays is not None:
                followed = follow(now.heap, now.arrays, now.maps, memory, until)
                used, free = in_arenas(spans_of(parts, Layer.ARENAS), own, memory)
                followed = replace(followed, threads=used, free_in_arenas=free)
        listed = sum(m.pss for m in now.maps)
        rounded = _rounding(now.total.pss - listed, len(now.maps))
        stat = proc.stat(pid)
    except PermissionError:
        raise UsageError(
            f"the memory of process {pid} may not be read: run memfit as its user or as root"
        ) from None
    except OSError:
        raise _gone(pid) from None
    environment = proc.environment(pid)
    up = time.clock_gettime(time.CLOCK_BOOTTIME)
    return ProcessView(
        pid=pid,
        parent=int(stat[1]),
        name=own[0].name if own else "",
        command=proc.command(pid),
        seconds=max(0.0, up - int(stat[19]) / os.sysconf("SC_CLK_TCK")),
        rss=sum(m.rss for m in now.maps),
        # Of what changes between two looks only one is told: that which the rows are of.
        pss=listed + sum(part.bytes for part in rounded),
        private=sum(m.private for m in now.maps),
        reserved=sum(m.reserved for m in now.maps),
        parts=(*parts, *rounded),
        pools=tuple(_pools(own, [p for p in parts if p.layer is Layer.STACKS])),
        settings={name: environment[name] for name in SETTINGS if name in environment},
        native=followed,
    )


def check_readable(pid: int) -> None:
    """Refuse what has no memory to explain, and say why."""
    try:
        words = proc.stat(pid)
    except OSError:
        raise UsageError(
            f"there is no process {pid}: look for the right one, for instance with `pgrep -af "
            "python`"
        ) from None
    if words[0] in "ZX":
        raise UsageError(
            f"process {pid} has ended and only waits for its parent (a zombie): it holds no "
            "memory. Explain the parent, or a process that runs"
        )
    if int(words[6]) & _KERNEL_THREAD:
        raise UsageError(
            f"process {pid} is a thread of the kernel, with no memory of its own: give the PID of "
            "a program"
        )
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            file.read(1)
    except PermissionError:
        raise UsageError(
            f"process {pid} belongs to another user, so its memory may not be read: run memfit as "
            "that user or as root"
        ) from None
    except OSError:
        raise _gone(pid) from None


def is_alive(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    try:
        return proc.stat(pid)[0] not in "ZX"
    except OSError:
        return False


def commands_with(*words: str) -> list[int]:
    """Processes that this user may read and whose command has these words one after the other."""
    found = []
    for pid in proc.processes():
        stems = [word.rsplit("/", 1)[-1] for word in proc.command(pid).split()]
        alike = (stems[i : i + len(words)] == list(words) for i in range(len(stems)))
        if pid != os.getpid() and any(alike):
            found.append(pid)
    return sorted(found)


def _gone(pid: int) -> UsageError:
    return UsageError(
        f"process {pid} ended while it was being read: start it again, or record it with `memfit "
        "run -- CMD`"
    )


def _rounding(missing: int, count: int) -> list[Part]:
    """What the kernel drops when it rounds each mapping down to whole KiB, but not their sum."""
    if not 0 < missing <= 1024 * count:
        return []
    where = f"smaps: {count} mappings, each rounded down to whole KiB"
    return [
        Part(
            name="rounding",
            layer=Layer.KERNEL,
            bytes=missing,
            resident=missing,
            reserved=missing,
            private=0,
            where=where,
        )
    ]


def _pools(own: Sequence[Thread], stacks: Sequence[Part]) -> list[ThreadPool]:
    by_name = {part.name: part for part in stacks}
    found: dict[str, list[Thread]] = {}
    for thread in own:
        found.setdefault(thread.pool, []).append(thread)
    return [
        ThreadPool(
            name=pool,
            threads=len(members),
            names=tuple(sorted({t.name for t in members})),
            reserved=by_name[pool].reserved if pool in by_name else 0,
            resident=by_name[pool].bytes if pool in by_name else 0,
        )
        for pool, members in found.items()
    ]
