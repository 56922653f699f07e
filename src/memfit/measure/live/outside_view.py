"""Who holds a process's memory as its objects say, read from outside: it is not asked."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

from memfit.measure.live.inside_view import told_by
from memfit.measure.live.listener_client import NoAnswer
from memfit.model import Layer, ProcessView, Told


def look_outside(view: ProcessView, *, seconds: float, roles: Mapping[str, str]) -> Told:
    """What a process's objects hold, as far as they are read in so many seconds.

    Raises NoAnswer where there is no interpreter whose objects are known.
    """
    # These load numpy, which those who only ask whether a process is alive do without.
    from memfit.measure.live.outside_walk.answer import walk_outside
    from memfit.measure.live.outside_walk.interpreter import NotWalkable

    started = time.monotonic()
    try:
        answer = walk_outside(view.pid, seconds=seconds, roles=roles)
    except NotWalkable as missing:
        raise NoAnswer(f"{missing} could not be found in it") from None
    told = told_by(view, answer)
    notes = []
    if not answer["walk"]["complete"]:
        notes.append(
            f"the walk over the objects of process {view.pid} ended after "
            f"{time.monotonic() - started:.1f} s, when {_share(view, told):.0%} of Python's small "
            "objects were counted, those of the run first"
        )
    return replace(told, outside=True, notes=tuple(notes))


def _share(view: ProcessView, told: Told) -> float:
    used = sum(part.used for part in view.parts if part.layer is Layer.OBJECTS)
    return min(1.0, sum(objects.small for objects in told.objects) / max(1, used))
