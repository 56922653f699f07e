"""The mappings of a process, as the kernel lists them in `/proc/PID/smaps`.

Reading them is all that the kernel allows from outside: nothing is written, the process is not
stopped, and no page of it is touched.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from memfit.measure.kernel.proc import PAGE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_PRESENT = 1 << 63
_AT_ONCE = 1 << 16  # pages looked up in one read

Span = tuple[int, int]


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
    found: list[Mapping] = []
    head: bytes = b""
    amounts: dict[str, int] = {}
    with open(f"/proc/{pid}/smaps", "rb") as file:
        for line in file:
            name, colon, rest = line.partition(b":")
            if colon and (field := _FIELDS.get(name)):
                amounts[field] = amounts.get(field, 0) + int(rest.split()[0]) * 1024
            elif b"-" in name and name[:1] in b"0123456789abcdef":
                if head:
                    found.append(_mapping(head, amounts))
                head, amounts = line, {}
    if head:
        found.append(_mapping(head, amounts))
    return found


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


def nameless(pid: int) -> list[Span]:
    """The addresses of all private memory that no file backs, which is known at once."""
    with open(f"/proc/{pid}/maps", "rb") as file:
        found = [_mapping(line, {}) for line in file]
    return [(m.start, m.end) for m in found if m.nameless]


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


def stretches(flags: NDArray[np.bool_]) -> list[Span]:
    """Where runs of true begin and end."""
    import numpy as np

    edges = np.flatnonzero(np.diff(flags.astype(np.int8), prepend=0, append=0))
    return [(a, b) for a, b in edges.reshape(-1, 2).tolist()]


class Pagemap:
    """Which pages of a process are in memory; nothing where the kernel does not tell."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        try:
            self._file = os.open(f"/proc/{pid}/pagemap", os.O_RDONLY)
        except OSError:
            self._file = -1

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    @property
    def readable(self) -> bool:
        return self._file >= 0

    def present(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """The stretches between two addresses that are in memory, as pairs of addresses."""
        import numpy as np

        first, last = start // PAGE, -(-end // PAGE)
        stretch: tuple[int, int] | None = None
        for page in range(first, last, _AT_ONCE):
            count = min(_AT_ONCE, last - page)
            try:
                entries = np.frombuffer(os.pread(self._file, 8 * count, 8 * page), dtype="<u8")
            except OSError:
                break
            there = (entries & np.uint64(_PRESENT)) != 0
            for a, b in stretches(there):
                begin, stop = (page + a) * PAGE, (page + b) * PAGE
                if stretch and stretch[1] == begin:
                    stretch = stretch[0], stop
                else:
                    if stretch:
                        yield stretch
                    stretch = begin, stop
        if stretch:
            yield stretch

    def resident(self, start: int, end: int) -> int:
        """How many bytes between two addresses are in memory; pages at the edges count by part."""
        return sum(min(b, end) - max(a, start) for a, b in self.present(start, end))


def split(mapping: Mapping, cuts: Sequence[int], pages: Pagemap) -> list[Mapping]:
    """A mapping cut at some addresses, each part with its own share of what is in memory."""
    edges = [mapping.start, *sorted(c for c in cuts if mapping.start < c < mapping.end)]
    edges.append(mapping.end)
    parts = list(pairwise(edges))
    if len(parts) == 1:
        return [mapping]
    if pages.readable:
        weights = [pages.resident(*part) for part in parts]
    else:
        weights = [b - a for a, b in parts]
    if not any(weights):  # it has changed since
        weights = [b - a for a, b in parts]
    return list(_shares(mapping, parts, weights))


def _shares(
    mapping: Mapping, parts: Sequence[tuple[int, int]], weights: Sequence[int]
) -> Iterator[Mapping]:
    """Amounts dealt out by weight, so that they add up to the whole to the byte."""
    total, before = sum(weights), 0
    for (start, end), weight in zip(parts, weights, strict=True):
        after = before + weight
        amounts = {
            name: getattr(mapping, name) * after // total - getattr(mapping, name) * before // total
            for name in ("rss", "pss", "private", "anonymous", "huge", "swap")
        }
        before = after
        yield replace(mapping, start=start, end=end, **amounts)
