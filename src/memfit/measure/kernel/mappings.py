"""The mappings of a process, as the kernel lists them in `/proc/PID/smaps`.

Reading them is all that the kernel allows from outside: nothing is written, the process is not
stopped, and no page of it is touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from memfit.measure.kernel.proc import read_smaps
from memfit.measure.kernel.process_memory import ProcessMemory, Span, cut


@dataclass(frozen=True, kw_only=True)
class Mapping:
    """A stretch of address space: what backs it, and how much of it is in memory, in bytes."""

    start: int
    end: int
    perms: str
    inode: int
    path: str
    rss: int = 0
    pss: int = 0
    private: int = 0
    anonymous: int = 0
    huge: int = 0
    swap: int = 0

    @property
    def reserved(self) -> int:
        return self.end - self.start

    @property
    def writable(self) -> bool:
        return "w" in self.perms

    @property
    def forbidden(self) -> bool:
        """Neither readable nor writable: a guard, or address space kept for later."""
        return self.perms.startswith("---")

    @property
    def nameless(self) -> bool:
        """Private memory that no file backs."""
        return not self.path and "p" in self.perms

    def holds(self, address: int) -> bool:
        return self.start <= address < self.end


_FIELDS = {
    b"Rss": "rss",
    b"Pss": "pss",
    b"Private_Clean": "private",
    b"Private_Dirty": "private",
    b"Private_Hugetlb": "private",
    b"Anonymous": "anonymous",
    b"AnonHugePages": "huge",
    b"SwapPss": "swap",
}


def mappings(pid: int) -> list[Mapping]:
    """All mappings of a process, by address. Raises OSError where they may not be read."""
    return in_smaps(f"/proc/{pid}/smaps")


def in_smaps(path: str | Path) -> list[Mapping]:
    """The mappings that such a file lists."""
    return _once(_mapping(head, amounts) for head, amounts in read_smaps(path, _FIELDS))


def _once(found: Iterable[Mapping]) -> list[Mapping]:
    """Each mapping as it was listed last.

    The kernel lists them a page of text at a time. One that grows between two pages, as a heap
    does, is there again: as a whole, not only with what came.
    """
    kept: list[Mapping] = []
    for mapping in found:
        while kept and kept[-1].end > mapping.start:
            kept.pop()
        kept.append(mapping)
    return kept


def _mapping(head: bytes, amounts: dict[str, int]) -> Mapping:
    words = head.split(maxsplit=5)
    start, end = words[0].split(b"-")
    path = words[5].strip().decode(errors="replace") if len(words) > 5 else ""
    return Mapping(
        start=int(start, 16),
        end=int(end, 16),
        perms=words[1].decode(),
        inode=int(words[4]),
        path=path,
        **amounts,
    )


def listed(pid: int) -> list[Mapping]:
    """All mappings of a process, without what is in memory of them, which is known at once."""
    with open(f"/proc/{pid}/maps", "rb") as file:
        return _once(_mapping(line, {}) for line in file)


def nameless(pid: int) -> list[Span]:
    """The addresses of all private memory that no file backs."""
    return [(m.start, m.end) for m in listed(pid) if m.nameless]


def apart(some: Sequence[Span], others: Sequence[Span]) -> int:
    """How many bytes belong to some of these stretches, but not to the others, or vice versa."""
    edges = [(edge, step) for span in some for edge, step in zip(span, (1, -1), strict=True)]
    edges += [(edge, step) for span in others for edge, step in zip(span, (2, -2), strict=True)]
    edges.sort()
    total = inside = 0
    for (edge, step), (following, _) in pairwise(edges):
        inside += step
        total += following - edge if inside in (1, 2) else 0
    return total


def split(mapping: Mapping, cuts: Sequence[int], memory: ProcessMemory) -> list[Mapping]:
    """A mapping cut at some addresses, each part with its own share of what is in memory."""
    parts = cut((mapping.start, mapping.end), cuts)
    if len(parts) == 1:
        return [mapping]
    weights = [memory.resident(*part) for part in parts] if memory.readable else []
    if not any(weights):  # it has changed since, or cannot be known
        weights = [b - a for a, b in parts]
    found, total, before = [], sum(weights), 0
    for (start, end), weight in zip(parts, weights, strict=True):
        after = before + weight
        amounts = {  # which add up to the whole to the byte
            name: getattr(mapping, name) * after // total - getattr(mapping, name) * before // total
            for name in _FIELDS.values()
        }
        found.append(replace(mapping, start=start, end=end, **amounts))
        before = after
    return found
