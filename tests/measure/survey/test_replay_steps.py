"""A run as numbers: every block has its own place, and malloc is looked at while it grows."""

from __future__ import annotations

import numpy as np

from memfit.measure.survey.cycle import ALIGNED, FREE, FREE_OLD, PLAIN, Cycle
from memfit.measure.survey.replay_steps import (
    ALLOC,
    FREE_KEPT,
    FREE_ONE,
    LOOK,
    MOMENT,
    PLAY,
    Alloc,
    Free,
    FreeKept,
    Moment,
    Play,
    Run,
    RunNumbers,
)

CYCLE = Cycle(
    kinds=np.array([PLAIN, ALIGNED, FREE, FREE_OLD]),
    slots=np.array([0, 1, 0, 2]),
    sizes=np.array([3, 1000, 7]),
    left=(1, 2),
    kept=(1,),
)
WHOLE = slice(None)


def test_steps_name_their_places() -> None:
    numbers = RunNumbers.of(
        Run(first=(Moment("a"), Alloc("x", 50), Free("x"), Moment("b"), Moment("a")))
    )
    assert numbers.first == ((MOMENT, 0), (ALLOC, 0, 50), (FREE_ONE, 0), (MOMENT, 1), (MOMENT, 0))
    assert (numbers.moments, numbers.blocks) == (("a", "b"), 1)


def test_blocks_of_a_cycle_have_room_though_they_are_released_before_they_are_asked_for() -> None:
    """As in a first iteration, where the time before was never played."""
    run = Run(
        first=(FreeKept(CYCLE, "old"), Play(CYCLE, "new", "old", WHOLE)),
        odd=(Play(CYCLE, "old", "new", WHOLE),),
    )
    numbers = RunNumbers.of(run)
    kept, (_, start, count, new, old) = numbers.first
    assert kept[0] == FREE_KEPT and kept[3] == old
    assert numbers.odd == ((PLAY, start, count, old, new),)
    assert abs(new - old) >= len(CYCLE.sizes)
    assert numbers.blocks == 2 * len(CYCLE.sizes)


def test_a_cycle_is_one_table_with_looks_where_much_was_asked_for() -> None:
    numbers = RunNumbers.of(Run(first=(Play(CYCLE, "a", "b", WHOLE), Play(CYCLE, "b", "a", WHOLE))))
    (_, start, count, *_), (_, again, *_) = numbers.first
    assert start == again
    kinds = numbers.tables[start : start + count]
    assert [kind for kind in kinds if kind != LOOK] == CYCLE.kinds.tolist()
    assert list(kinds)[2] == LOOK  # after the large one
    sizes = list(numbers.tables[start + 2 * count : start + 3 * count])
    assert sizes[:2] == [3, 1000]


def test_parts_of_a_cycle_are_all_of_it() -> None:
    parts = (slice(None, 2), slice(2, None))
    numbers = RunNumbers.of(Run(first=tuple(Play(CYCLE, "a", "b", part) for part in parts)))
    kinds = [
        kind
        for _, start, count, *_ in numbers.first
        for kind in numbers.tables[start : start + count]
        if kind != LOOK
    ]
    assert kinds == CYCLE.kinds.tolist()
