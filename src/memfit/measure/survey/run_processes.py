"""Reads the processes that a run has started: workers of its vector env, their helpers, others."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from memfit.measure.kernel import proc
from memfit.model import OtherProcesses, ProcessNames, WorkerReading

HELPERS = "helpers"
_HELPER = re.compile(r"multiprocessing\.(resource_tracker|forkserver|semaphore_tracker)")
_SPAWNED = "multiprocessing.spawn"


def read_workers(workers: Sequence[int]) -> WorkerReading:
    """The private memory of one worker with what it started, and what their helpers hold."""
    private = []
    for pid in workers:
        if (own := proc.rollup(pid)) is not None:
            below = (proc.rollup(p) for p in proc.descendants(pid) if p not in workers)
            private.append(own.private_dirty + sum(r.private for r in below if r is not None))
    helpers = 0
    for pid in _not_under(workers):
        if _helps(pid, workers) and (reading := proc.rollup(pid)) is not None:
            helpers += reading.pss_anon
    each = sum(private) // len(private) if private else 0
    return WorkerReading(started=len(private), each_bytes=each, shared_bytes=helpers)


def read_others(
    workers: Sequence[int],
    started: Mapping[int, tuple[str, str]] | None = None,
    names: ProcessNames = ProcessNames(),  # noqa: B008 - it is frozen
) -> tuple[OtherProcesses, ...]:
    """What this process has started beside its workers and their helpers, by kind.

    `started` gives name and kind of some, by pid; a library may have `names` for its own.
    """
    found: dict[tuple[str, str], list[int]] = {}
    own = proc.rollup() if names.shared[0] else None
    shared, of_library = own.pss_shmem if own is not None else 0, False
    for pid in _not_under(workers):
        if workers and _helps(pid, workers):
            continue
        given = (started or {}).get(pid) or _named(pid, names)
        reading, kind = proc.rollup(pid), given or _kind(pid)
        if reading is None or kind is None:
            continue
        private = reading.private
        if given is not None and names.shared[0]:
            of_library = True
            shared += reading.pss_shmem
            private -= min(private, reading.pss_shmem)
        found.setdefault(kind, []).append(private)
    groups = [
        OtherProcesses(
            name=name,
            count=len(private),
            private_bytes=sum(private),
            what=what,
            for_envs=name != HELPERS,
        )
        for (name, what), private in sorted(found.items())
    ]
    if of_library and shared:
        name, what = names.shared
        groups.append(
            OtherProcesses(
                name=name, count=1, private_bytes=shared, what=what, for_envs=False, shared=True
            )
        )
    return tuple(groups)


def _named(pid: int, names: ProcessNames) -> tuple[str, str] | None:
    """What a library calls a process of its own."""
    command = proc.command(pid) if names.patterns else ""
    rows = ((name, what) for pattern, name, what in names.patterns if re.search(pattern, command))
    return next(rows, None)


def _not_under(workers: Sequence[int]) -> Iterator[int]:
    """All processes below this one that are no worker, nor started by one."""
    under = {p for worker in workers for p in (worker, *proc.descendants(worker))}
    yield from (pid for pid in proc.descendants(os.getpid()) if pid not in under)


def _helps(pid: int, workers: Sequence[int]) -> bool:
    """Whether a process started workers, or keeps what they leave behind."""
    below = proc.descendants(pid)
    return _is_helper(pid) or any(worker in below for worker in workers)


def _is_helper(pid: int) -> bool:
    return bool(_HELPER.search(proc.command(pid))) and not _is_fork(pid)


def _is_fork(pid: int) -> bool:
    """Whether a process has the command line of the one that started it."""
    try:
        parent = int(proc.stat(pid)[1])
    except (OSError, IndexError):
        return False
    return proc.command(parent) == proc.command(pid)


def _kind(pid: int) -> tuple[str, str] | None:
    """The name of a process's row, and how it came to be; None where it is gone."""
    command = proc.command(pid)
    if not command:
        return None
    if _is_helper(pid):
        return HELPERS, "the fork server and resource tracker"
    if _is_fork(pid):
        return "forks", "forks of a Python"
    if _SPAWNED in command:
        return "spawned", "started by multiprocessing"
    program = Path(command.split(" ", 1)[0]).name
    return re.sub(r"[^\w.+-]", "_", program)[:32], program
