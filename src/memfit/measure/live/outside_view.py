"""Who holds a process's memory as its objects say, read from outside: it is not asked."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from memfit.measure.live.inside_view import told_by
from memfit.measure.live.listener_client import NoAnswer
from memfit.model import Layer, ProcessView, Told

if TYPE_CHECKING:
    from memfit.measure.live.outside_walk.answer import OutsideWalk

_MOST_SHOWN = 8  # processes that a note names
_LEAST_COPY = 2**26
_MOST_KEPT = 16  # walks that may go on later


class OutsideLooks:
    """Looks at the objects of several processes: at the variables of all before their libraries.

    Raises NoAnswer where there is no interpreter whose objects are known.
    """

    def __init__(self, roles: Mapping[str, str], processes: int) -> None:
        self._roles = roles
        self._most = max(_LEAST_COPY, 2**30 // max(1, processes))
        self._walks: dict[int, OutsideWalk] = {}
        self._known: dict[int, Told] = {}
        self._cut: list[tuple[ProcessView, int]] = []

    def __enter__(self) -> OutsideLooks:
        return self

    def __exit__(self, *_: object) -> None:
        for walk in self._walks.values():
            walk.close()

    def variables(self, view: ProcessView, seconds: float) -> None:
        """See what the run's variables hold in a process, as far as there is time."""
        # These load numpy, which those who only ask whether a process is alive do without.
        from memfit.measure.live.outside_walk.answer import OutsideWalk

        until = time.monotonic() + seconds
        with _in_words():
            walk = OutsideWalk(view.pid, roles=self._roles, most_copied=self._most)
            self._walks[view.pid] = walk
            walk.variables(until - time.monotonic())
        if len(self._walks) > _MOST_KEPT:
            self._known[view.pid] = self.told(view)

    def goes_on(self, view: ProcessView) -> bool:
        """Whether there is more to see in a process that was looked at."""
        return view.pid in self._walks and not self._walks[view.pid].ended

    def libraries(self, view: ProcessView, seconds: float) -> None:
        """See what libraries hold in it too, where the look at it `goes_on`."""
        with _in_words():
            self._walks[view.pid].libraries(seconds)

    def told(self, view: ProcessView) -> Told:
        """What was seen of a process, which is not looked at any more."""
        if view.pid in self._known:
            return self._known[view.pid]
        with _in_words(), self._walks.pop(view.pid) as walk:
            return self._told(view, walk)

    def note(self) -> str:
        """Which walks had too little time, and how far they came; empty where none had."""
        if not self._cut:
            return ""
        pids = ", ".join(map(str, sorted(view.pid for view, _ in self._cut)[:_MOST_SHOWN]))
        used = sum(p.used for view, _ in self._cut for p in view.parts if p.layer is Layer.OBJECTS)
        share = min(1.0, sum(small for _, small in self._cut) / max(1, used))
        walks, of = ("walk", "process") if len(self._cut) == 1 else ("walks", "processes")
        return (
            f"no time for more: the {walks} over the objects of {of} {pids} ended when {share:.0%} "
            "of Python's small objects were counted, those of the run first"
        )

    def _told(self, view: ProcessView, walk: OutsideWalk) -> Told:
        told = replace(told_by(view, walk.answer()), outside=True, notes=())
        if not told.complete:
            self._cut.append((view, sum(objects.small for objects in told.objects)))
        return told


@contextmanager
def _in_words() -> Iterator[None]:
    from memfit.measure.live.outside_walk.interpreter import NotWalkable

    try:
        yield
    except NotWalkable as missing:
        raise NoAnswer(f"{missing} could not be found in it") from None
