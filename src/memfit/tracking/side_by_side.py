"""Processes that train side by side: what each holds of its own, what they share, how they end."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass

from memfit.measure.children.process_lifetime import end_tree, end_with_parent
from memfit.measure.kernel import proc

__all__ = ["Held", "end_with_parent", "end_with_workers", "held", "memory_of", "together", "tree"]


@dataclass(frozen=True, kw_only=True)
class Held:
    """What processes hold together, in bytes.

    `private` counts by PSS, so that pages which a tree shares within itself count once; `own` is
    the part of it that no other process maps. Pages of libraries and other files count as the
    process with most of them has them: a second training maps the same ones.
    """

    private: int = 0
    files: int = 0
    own: int = 0

    @property
    def total(self) -> int:
        return self.private + self.files


def tree(pid: int) -> list[int]:
    """A process and all below it."""
    return [pid, *proc.descendants(pid)]


def memory_of(pid: int) -> Held:
    """What one process holds; one that is gone holds nothing."""
    read = proc.rollup(pid)
    if read is None:
        return Held()
    return Held(private=read.pss_anon + read.pss_shmem, files=read.files, own=read.private_dirty)


def together(each: Iterable[Held]) -> Held:
    """What processes hold together, from what each of them holds."""
    found = list(each)
    return Held(
        private=sum(one.private for one in found),
        files=max((one.files for one in found), default=0),
        own=sum(one.own for one in found),
    )


def held(pids: Iterable[int]) -> Held:
    """What these processes hold together."""
    return together(map(memory_of, pids))


def end_with_workers(started: subprocess.Popen[bytes]) -> None:
    """End a process that was started here, and all below it, and wait until it is gone."""
    if started.poll() is None:  # else its number may be that of another process by now
        end_tree(started.pid)
    started.wait()
