"""What each process of a tree holds over time, at a pace that stays affordable however many."""

from __future__ import annotations

from collections.abc import Mapping

from memfit.measure.kernel import proc
from memfit.model import Member, Reading

_SECONDS, _PROCESSES = 1.0, 8  # between two looks at so many; more of them are looked at less often
_MOST_KEPT = 20_000  # readings of all of them, after which every second one goes
_MOST_MEMBERS = 256
_LEAST_SHARE = 0.01  # of the tree: who holds less is left out
_LONGEST_NAME = 200


class MemberSeries:
    """Series of the processes that are there, and of those that were large."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._known: set[int] = set()
        self._readings: dict[int, list[Reading]] = {}
        self._next = 0.0
        self._every = _SECONDS
        self._last: Mapping[int, int] = {}

    def look(self, seconds: float, held: Mapping[int, int]) -> list[tuple[int, str, int]]:
        """Take what they hold now, if it is due and new: PIDs, names and bytes."""
        if seconds < self._next or held is self._last or not held:
            return []
        self._last = held
        self._next = seconds + self._every * max(1.0, len(held) / _PROCESSES)
        least = _LEAST_SHARE * sum(held.values())
        found = []
        for pid, amount in sorted(held.items(), key=lambda item: -item[1])[:_MOST_MEMBERS]:
            if amount < least and pid not in self._readings:
                continue
            if pid not in self._known:  # where it has just been started, it may have none yet
                command = proc.command(pid)[:_LONGEST_NAME]
                self._names[pid] = command or f"process {pid}"
                self._known |= {pid} if command else set()
            self._readings.setdefault(pid, []).append(Reading(seconds=seconds, bytes=amount))
            found.append((pid, self._names[pid], amount))
        self._bound(held)
        return found

    @property
    def members(self) -> tuple[Member, ...]:
        """Those that are there, as far as they were seen."""
        return tuple(
            Member(pid=pid, name=self._names[pid], readings=tuple(self._readings[pid]))
            for pid in self._last
            if pid in self._readings
        )

    def _bound(self, held: Mapping[int, int]) -> None:
        for pid in [pid for pid in self._readings if pid not in held]:
            del self._readings[pid], self._names[pid]
            self._known.discard(pid)
        if sum(map(len, self._readings.values())) > _MOST_KEPT:
            self._every *= 2
            for readings in self._readings.values():
                del readings[::2]
