"""Looks now and then at who holds the memory of a recorded run, to tell what grew.

A small process of its own reads the run's objects from outside, so that neither the run nor the
guard waits for it, but for the last look at a run that is over its limit and held still. Nothing is
looked at where the machine has little memory left.
"""

from __future__ import annotations

import collections
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from memfit.measure.kernel.limits import available
from memfit.units import MIB, format_bytes

_PROGRAM = "memfit.measure.live.outside_walk"
_WALK_SECONDS, _LONGEST = 4.0, 120.0  # of walking; of the whole process, after which it is ended
_LAST_WALK, _LAST_LOOK = 1.5, 3.0  # seconds of both where a run is held still for it
_NICE, _LAST_NICE = 5, 0  # while the run works, and while it is held still
_FIRST, _APART = 4.0, 4.0  # seconds after the start, and between two looks, at least
_APART_SHARE = 0.1  # of the time so far, so that there are looks near the end too
_MOST_LOOKS = 64
_WORK, _SHARE = 4.0, 0.02  # seconds of the processor, and share of the time, that looks may take
_TAKES = 1.2  # seconds of the processor that the first look is believed to take
_REFUSED = 60.0  # seconds to the next try where no process could be started
_ALIKE = 1.5  # times what the other grew by
_GROWN = 1.1  # times what was held at the last look
_LEAST = 64 * MIB  # a run that holds less is not looked at
_NEEDS = 512 * MIB  # that must be left on the machine
_TOLD = 8 * MIB  # less is not worth a word
_BEGUN = 0.05  # of what was added in all: less is no growth yet
_ELEMENTS_ADDED = 16  # to a container, before bytes of each are told
_ELEMENTS = "[*]"


@dataclass(frozen=True, kw_only=True)
class _Look:
    """What one process of the run held, by holder."""

    seconds: float
    pid: int
    step: int | None
    held: Mapping[str, int]
    elements: Mapping[str, int]


@dataclass(kw_only=True)
class HolderLooks:
    """The looks so far at the process that grew most, beside the largest."""

    looks: list[_Look] = field(default_factory=list)
    _of_others: dict[int, list[_Look]] = field(default_factory=dict)
    _first_held: dict[int, int] = field(default_factory=dict)
    _main: int = 0
    _running: subprocess.Popen[bytes] | None = None
    _began: tuple[float, int, int | None] = (0.0, 0, None)
    _bytes: int = 0
    _next: float = _FIRST
    _work: float = 0.0
    _each: float = _TAKES
    _environment: dict[str, str] = field(
        default_factory=lambda: {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    )

    @property
    def first(self) -> _Look | None:
        return self.looks[0] if self.looks else None

    @property
    def last(self) -> _Look | None:
        return self.looks[-1] if self.looks else None

    def look(self, seconds: float, held: Mapping[int, int], step: int | None) -> None:
        """Take what a look has found, or begin one where it is due; never waits."""
        self._main = self._main or max(held, key=lambda pid: held[pid], default=0)
        if self._running is not None:
            self._take(seconds)
        elif held and self._due(seconds, sum(held.values())):
            self._begin(seconds, held, step, _WALK_SECONDS, _NICE)

    def look_last(self, seconds: float, held: Mapping[int, int], step: int | None) -> None:
        """Look once more and wait for it, a short while: the run is held still, and then ends."""
        if not held or available() < _NEEDS:
            return
        self.end()
        self._begin(seconds, held, step, _LAST_WALK, _LAST_NICE)
        if self._running is not None:
            with suppress(subprocess.TimeoutExpired):  # what it writes fits into the pipe
                self._running.wait(_LAST_LOOK)
            self._take(seconds)
        self.end()

    def _begin(
        self, seconds: float, held: Mapping[int, int], step: int | None, walk: float, nice: int
    ) -> None:
        pid = self._whom(held)
        self._began = seconds, pid, step
        self._bytes = sum(held.values())
        self._next = seconds + _REFUSED
        with suppress(OSError):  # no process more is permitted
            self._running = subprocess.Popen(
                [sys.executable, "-P", "-m", _PROGRAM, str(pid), str(walk), str(nice)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=self._environment,
            )

    def _whom(self, held: Mapping[int, int]) -> int:
        """The process that grew most since it was first seen; at first the largest."""
        begun = {pid: self._first_held.setdefault(pid, held[pid]) for pid in held}
        more = {pid: held[pid] - begun[pid] for pid in held}
        most = max(held, key=lambda pid: (max(0, more[pid]), held[pid]))
        now = self.last.pid if self.last is not None else None
        # Of two that grow alike, one is followed: two looks at it tell what grew.
        return now if now in more and more[now] * _ALIKE >= more[most] else most

    def _due(self, seconds: float, amount: int) -> bool:
        if seconds < self._next or amount < max(_LEAST, _GROWN * self._bytes):
            return False
        if self._work + self._each > _WORK + _SHARE * seconds:
            return False
        return available() >= _NEEDS

    def _take(self, seconds: float) -> None:
        assert self._running is not None and self._running.stdout is not None
        began, pid, step = self._began
        if self._running.poll() is None:
            if seconds - began > _LONGEST:
                self.end()
            return
        self._next = seconds + max(_APART, _APART_SHARE * seconds)
        with suppress(ValueError, TypeError, KeyError, AttributeError), self._running.stdout as out:
            found = json.loads(out.read())
            self._each = float(found["seconds"])
            self._work += self._each
            look = _Look(
                seconds=began,
                pid=pid,
                step=step,
                held=_by_container(found["held"]),
                elements={path: int(count) for path, count in found["elements"].items()},
            )
            if self.looks and self.looks[0].pid != pid:
                self._of_others[self.looks[0].pid] = self.looks
                self.looks = self._of_others.pop(pid, [])
            if len(self.looks) >= _MOST_LOOKS:
                del self.looks[1::2]
            self.looks.append(look)
        self._running = None

    def end(self) -> None:
        """Leave nothing running."""
        if self._running is not None:
            self._running.kill()
            self._running.communicate()
            self._running = None

    def grown(self) -> str:
        """What grew most between the looks, in a sentence; empty where nothing is known to."""
        first, last = self.first, self.last
        if first is None or last is None or last.seconds <= first.seconds:
            return ""
        more = {path: now - first.held.get(path, 0) for path, now in last.held.items()}
        path = max(more, key=lambda name: more[name], default="")
        if not path or more[path] < _TOLD:
            return ""
        begun = self._begun(path, first.held.get(path, 0) + _BEGUN * more[path])
        added, seconds = last.held[path] - begun.held.get(path, 0), last.seconds - begun.seconds
        rates = [f"{format_bytes(round(added / seconds))}/s"]
        if begun.step is not None and last.step is not None and last.step > begun.step:
            rates.append(f"{format_bytes(round(added / (last.step - begun.step)))} a step")
        grown = last.elements.get(path, 0) - begun.elements.get(path, 0)
        known = path in begun.elements or begun.held.get(path, 0) < _BEGUN * added
        if known and grown >= _ELEMENTS_ADDED:
            rates.append(f"{format_bytes(round(added / grown))} for each of {grown:,} new elements")
        times = f"from {begun.seconds:.0f} s to {last.seconds:.0f} s"
        return (
            f"{path}{self._where(last)} grew most: by {format_bytes(added)} {times}, "
            f"{' or '.join(rates)}, to {format_bytes(last.held[path])}"
        )

    def _where(self, look: _Look) -> str:
        """Which process it was in, where it was not the run's first."""
        return f" in process {look.pid}" if self._main not in (0, look.pid) else ""

    def _begun(self, path: str, most: float) -> _Look:
        """The last look before a holder had come to hold more than so much."""
        begun = self.looks[0]
        for look in self.looks[:-1]:
            if look.held.get(path, 0) > most:
                break
            begun = look
        return begun

    def held_most(self) -> str:
        """What held most, for a run that ended before it could be seen to grow."""
        held = self.last.held if self.last is not None else {}
        path = max(held, key=lambda name: held[name], default="")
        if self.last is None or not path or held[path] < _TOLD:
            return ""
        where, at = self._where(self.last), f"{self.last.seconds:.0f} s"
        return f"{path}{where} held most at {at}: {format_bytes(held[path])}"


def _by_container(held: Mapping[str, int]) -> dict[str, int]:
    """What each container holds with all of its elements."""
    found: collections.Counter[str] = collections.Counter()
    for path, amount in held.items():
        found[path.partition(_ELEMENTS)[0]] += int(amount)
    return dict(found)
