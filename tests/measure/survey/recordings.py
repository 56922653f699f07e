"""Recordings made by hand, and drawn ones."""

from __future__ import annotations

from hypothesis import strategies as st

from memfit.measure.survey.recorded_allocations import WORK_DONE, AllocationEvent
from memfit.model.training import FORWARD_DONE


def made(block: int, size: int, code: str = "line") -> AllocationEvent:
    where = ((code, "train.py", 1),)
    return AllocationEvent(block, False, size, where=where, aligned=code != "numpy")


def freed(block: int, size: int = 1) -> AllocationEvent:
    return AllocationEvent(block, True, size)


def note(block: int, word: str) -> list[AllocationEvent]:
    """A note is an allocation of an odd size, released at once."""
    return [AllocationEvent(block, False, 1_000_007, word), freed(block, 1_000_007)]


FATES = ("freed", "replaced at once", "replaced at the end", "kept")


@st.composite
def recordings(draw: st.DrawFn, fates: tuple[str, ...] = FATES) -> list[AllocationEvent]:
    """Two pieces of the same work, whose blocks have fates of all kinds."""
    work = draw(
        st.lists(st.tuples(st.integers(1, 99), st.sampled_from(fates)), min_size=1, max_size=8)
    )
    forward = draw(st.integers(0, len(work)))
    events: list[AllocationEvent] = []
    for half in (0, 1):
        first = half * 100
        for i, (size, fate) in enumerate(work):
            if i == forward:
                events += note(first + 52, FORWARD_DONE)
            events.append(made(first + i, size, draw(st.sampled_from(("a", f"op{i}")))))
            if half and fate == "replaced at once":
                events.append(freed(i, size))
        for i, (size, fate) in enumerate(work):
            if fate == "freed":
                events.append(freed(first + i, size))
            if half and fate == "replaced at the end":
                events.append(freed(i, size))
        events += note(first + 99, WORK_DONE)
    return events
