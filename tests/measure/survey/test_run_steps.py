"""The sequence of a run's allocations, step by step, from cycles made by hand."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from memfit.measure.survey.malloc_replay import Alloc, Free, IterationEnd, Moment, Step
from memfit.measure.survey.recorded_allocations import EARLIER, WORK_DONE, AllocationEvent
from memfit.measure.survey.run_steps import (
    ALWAYS_MAPPED,
    MOST_STEPS,
    Act,
    Cycle,
    live_peak,
    run_steps,
)
from memfit.model.training import FEW_STEPS, FORWARD_DONE, HeldArray, Sizes


def made(block: int, size: int, code: str = "line") -> AllocationEvent:
    where = ((code, "train.py", 1),)
    return AllocationEvent(block, False, size, where=where, aligned=code != "numpy")


def freed(block: int, size: int = 1) -> AllocationEvent:
    return AllocationEvent(block, True, size)


def note(block: int, word: str) -> list[AllocationEvent]:
    """A note is an allocation of an odd size, released at once."""
    return [AllocationEvent(block, False, 1_000_007, word), freed(block, 1_000_007)]


# Each time: a tensor that the next time replaces, one that comes and goes, one that stays.
RECORDED = [
    made(0, 100, "linear"),
    made(1, 50, "tanh"),
    freed(1, 50),
    made(2, 70, "graph"),
    *note(3, WORK_DONE),
    freed(EARLIER, 999),  # of something before the recording
    made(4, 30, "numpy"),
    freed(4, 30),
    made(5, 100, "linear"),
    freed(0, 100),
    made(6, 50, "tanh"),
    *note(7, FORWARD_DONE),
    freed(6, 50),
    made(8, 70, "graph"),
    *note(9, WORK_DONE),
    freed(5, 100),  # after the end, when what the work returned is let go
]


def test_a_cycle_is_the_second_of_two() -> None:
    cycle = Cycle.of(RECORDED)
    assert cycle.acts == (
        Act(4, bytes=30),
        Act(4, free=True),
        Act(5, bytes=100, aligned=True),
        Act(5, free=True, old=True),
        Act(6, bytes=50, aligned=True),
        Act(7, note=FORWARD_DONE),
        Act(6, free=True),
        Act(8, bytes=70, aligned=True),
    )
    assert cycle.left == (5, 8)
    assert cycle.kept == (8,)
    assert cycle.kept_bytes == 70


def test_what_the_first_left_without_a_successor_is_not_released_again() -> None:
    """First use: the second time has nothing of that size."""
    events = [made(0, 33), *note(1, WORK_DONE), made(2, 44), freed(0, 33), *note(3, WORK_DONE)]
    cycle = Cycle.of(events)
    assert cycle.acts == (Act(2, bytes=44, aligned=True),)
    assert (cycle.left, cycle.kept) == ((2,), (2,))


def test_of_equal_blocks_the_oldest_is_replaced_by_the_oldest() -> None:
    events = [made(0, 10), made(1, 10), *note(2, WORK_DONE), made(3, 10), made(4, 10), freed(1, 10)]
    cycle = Cycle.of([*events, *note(5, WORK_DONE)])
    assert cycle.acts[-1] == Act(4, free=True, old=True)
    assert cycle.kept == (3,)


def test_the_live_peak_begins_with_what_the_last_cycle_left() -> None:
    # 100 are left, 100 come before they go, 50 come, 70 stay.
    assert live_peak(Cycle.of(RECORDED)) == 200


def test_the_live_peak_of_nothing_is_nothing() -> None:
    assert live_peak(Cycle(acts=(), left=(), kept=(), kept_bytes=0)) == 0


UPDATE = Cycle(
    acts=(
        Act(0, bytes=5),
        Act(1, bytes=10, aligned=True),
        Act(0, free=True),
        Act(3, bytes=20, aligned=True),
        Act(4, note=FORWARD_DONE),
        Act(1, free=True),
        Act(3, free=True, old=True),
    ),
    left=(3,),
    kept=(),
    kept_bytes=0,
)
# A step of a rollout: a graph that stays, and an action that the next step replaces.
ROLLOUT = Cycle(
    acts=(
        Act(0, bytes=8, aligned=True),
        Act(1, bytes=6, aligned=True),
        Act(1, free=True, old=True),
    ),
    left=(0, 1),
    kept=(0,),
    kept_bytes=8,
)
TRAINING = ("rollout", "update")


def updated(iteration: int, *, graph: Iterable[Step] = ()) -> list[Step]:
    """What `UPDATE` asks for; `graph` is what goes when its forward pass is done."""
    name = ("update", iteration)
    last: list[Step] = [Free(("update", iteration - 1, 3))] if iteration else []
    return [
        Alloc((*name, 0), 5),
        Alloc((*name, 1), 10, aligned=True),
        Free((*name, 0)),
        Alloc((*name, 3), 20, aligned=True),
        *graph,
        Free((*name, 1)),
        *last,
    ]


def steps(sizes: Sizes, *, rollout: Cycle | None = None, iterations: int = 2) -> list[Step]:
    found = list(run_steps(sizes=sizes, update=UPDATE, rollout=rollout, iterations=iterations))
    assert found.count(IterationEnd()) == iterations
    return [step for step in found if step != IterationEnd()]


def test_arrays_of_a_rollout_are_copied_and_made_anew() -> None:
    observations = HeldArray(
        name="observations", bytes=100, phases=TRAINING, copied_in="update.flatten"
    )
    rewards = HeldArray(name="rewards", bytes=30, phases=TRAINING)
    found = steps(
        Sizes(
            unit=1,
            width=1,
            collects=True,
            moment="update.minibatch",
            arrays=(observations, rewards),
        )
    )
    assert found == [
        Alloc(("first", "observations"), 100),
        Free(("first", "observations")),
        Alloc(("first", "rewards"), 30),
        Free(("first", "rewards")),
        Moment("rollout"),
        Moment("rollout"),
        Alloc(("rows", "observations", 0, 0), 100),
        Alloc(("rows", "rewards", 0, 0), 30),
        Moment("update.flatten"),
        Alloc(("copy", "observations", 0, 0), 100),
        Free(("rows", "observations", 0, 0)),
        Moment("update.minibatch"),
        *updated(0),
        Moment("rollout"),
        Alloc(("rows", "observations", 1, 0), 100),
        Free(("copy", "observations", 0, 0)),
        Alloc(("rows", "rewards", 1, 0), 30),
        Free(("rows", "rewards", 0, 0)),
        Moment("update.flatten"),
        Alloc(("copy", "observations", 1, 0), 100),
        Free(("rows", "observations", 1, 0)),
        Moment("update.minibatch"),
        *updated(1),
        Moment("rollout"),
    ]


def test_a_large_array_of_a_rollout_costs_nothing_before_it_is_filled() -> None:
    observations = HeldArray(name="observations", bytes=ALWAYS_MAPPED, phases=TRAINING)
    found = steps(Sizes(unit=1, width=1, collects=True, arrays=(observations,)))
    old, new = (("rows", "observations", i, 0) for i in (0, 1))
    assert found.index(Free(old)) < found.index(Alloc(new, ALWAYS_MAPPED))


def test_arrays_of_an_update_are_there_before_the_old_ones_go() -> None:
    """What is built stays for good; a run that does not collect has one moment."""
    replay = HeldArray(name="replay", bytes=41, pieces=2, phases=("build", *TRAINING))
    returns = HeldArray(name="returns", bytes=30)
    assert steps(Sizes(unit=1, width=1, arrays=(replay, returns))) == [
        Moment("update"),
        Alloc(("rows", "replay", 0, 0), 20),
        Alloc(("rows", "replay", 0, 1), 20),
        Moment("update"),
        Alloc(("rows", "returns", 0, 0), 30),
        *updated(0),
        Moment("update"),
        Alloc(("rows", "returns", 1, 0), 30),
        Free(("rows", "returns", 0, 0)),
        *updated(1),
    ]


def stepped(iteration: int, last: Step | None) -> list[Step]:
    """Two steps of `ROLLOUT`; `last` is what releases the action of the step before."""
    first, second = ("rollout", iteration, 0), ("rollout", iteration, 1)
    return [
        Alloc((*first, 0), 8, aligned=True),
        Alloc((*first, 1), 6, aligned=True),
        *([last] if last else []),
        Alloc((*second, 0), 8, aligned=True),
        Alloc((*second, 1), 6, aligned=True),
        Free((*first, 1)),
    ]


def graphs(*, keeps_last_graph: bool) -> Sizes:
    return Sizes(
        unit=2,
        width=2,
        collects=True,
        collected=1,
        steps=2,
        records_gradients=True,
        keeps_last_graph=keeps_last_graph,
    )


FIRST_GRAPH: list[Step] = [Free(("rollout", 0, 0, 0)), Free(("rollout", 0, 1, 0))]
SECOND_GRAPH: list[Step] = [Free(("rollout", 1, 0, 0)), Free(("rollout", 1, 1, 0))]


def test_a_graph_goes_after_its_update() -> None:
    assert steps(graphs(keeps_last_graph=False), rollout=ROLLOUT) == [
        Moment("rollout"),
        Moment("rollout"),
        *stepped(0, None),
        Moment("update"),
        *updated(0),
        *FIRST_GRAPH,
        Moment("rollout"),
        *stepped(1, Free(("rollout", 0, 1, 1))),
        Moment("update"),
        *updated(1),
        *SECOND_GRAPH,
        Moment("rollout"),
    ]


def test_a_graph_that_is_kept_goes_when_the_next_forward_pass_is_done() -> None:
    assert steps(graphs(keeps_last_graph=True), rollout=ROLLOUT) == [
        Moment("rollout"),
        Moment("rollout"),
        *stepped(0, None),
        Moment("update"),
        *updated(0),
        Moment("rollout"),
        *stepped(1, Free(("rollout", 0, 1, 1))),
        Moment("update"),
        *updated(1, graph=FIRST_GRAPH),
        Moment("rollout"),
    ]


def asked(found: Iterable[Step], first: str) -> list[int]:
    """The bytes of every block whose name begins so."""
    return [
        s.bytes
        for s in found
        if isinstance(s, Alloc) and isinstance(s.name, tuple) and s.name[0] == first
    ]


def test_many_steps_of_a_graph_are_fewer_and_larger() -> None:
    sizes = Sizes(unit=1, width=1, collects=True, steps=3 * MOST_STEPS, records_gradients=True)
    found = steps(sizes, rollout=ROLLOUT, iterations=1)
    assert asked(found, "rollout") == [24, 18] * MOST_STEPS


def test_few_steps_of_a_rollout_that_keeps_nothing_are_enough() -> None:
    rollout = Cycle(acts=(Act(0, bytes=8), Act(0, free=True)), left=(), kept=(), kept_bytes=0)
    sizes = Sizes(unit=1, width=1, collects=True, steps=3 * MOST_STEPS)
    assert asked(steps(sizes, rollout=rollout, iterations=1), "rollout") == [8] * FEW_STEPS


def test_an_array_of_many_pieces_has_fewer_and_larger_ones() -> None:
    array = HeldArray(name="flights", bytes=1000 * MOST_STEPS, pieces=10_000, phases=TRAINING)
    found = steps(Sizes(unit=1, width=1, collects=True, arrays=(array,)), iterations=1)
    assert asked(found, "rows") == [1000] * MOST_STEPS


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


held_arrays = st.builds(
    HeldArray,
    name=st.sampled_from(("one", "two")),
    bytes=st.integers(0, 500),
    pieces=st.integers(1, 3),
    phases=st.sampled_from((("build", "update"), TRAINING)),
    copied_in=st.sampled_from(("", "update.flatten")),
)


@given(
    update=recordings(),
    rollout=st.one_of(st.none(), recordings()),
    arrays=st.lists(held_arrays, max_size=2, unique_by=lambda a: a.name),
    steps_each=st.integers(1, 5),
    records=st.booleans(),
    keeps=st.booleans(),
    iterations=st.integers(1, 4),
)
def test_every_block_is_asked_for_once_and_released_at_most_once(
    update: list[AllocationEvent],
    rollout: list[AllocationEvent] | None,
    arrays: list[HeldArray],
    steps_each: int,
    records: bool,
    keeps: bool,
    iterations: int,
) -> None:
    sizes = Sizes(
        unit=1,
        width=1,
        collects=rollout is not None,
        steps=steps_each,
        records_gradients=records,
        keeps_last_graph=keeps,
        arrays=tuple(arrays),
    )
    alive: set[object] = set()
    seen: set[object] = set()
    for step in run_steps(
        sizes=sizes,
        update=Cycle.of(update),
        rollout=Cycle.of(rollout) if rollout else None,
        iterations=iterations,
    ):
        if isinstance(step, Alloc):
            assert step.name not in seen
            seen.add(step.name)
            alive.add(step.name)
        elif isinstance(step, Free):
            alive.remove(step.name)


@given(recordings(fates=("freed", "replaced at once", "replaced at the end")))
def test_the_live_peak_is_that_of_the_run(events: list[AllocationEvent]) -> None:
    """What repeats and keeps nothing is at its peak in every iteration but the first."""
    cycle = Cycle.of(events)
    if cycle.kept:  # of equal blocks, another one was taken for the successor
        return
    live: dict[object, int] = {}
    peak = 0
    for step in run_steps(sizes=Sizes(unit=1, width=1), update=cycle, rollout=None, iterations=3):
        if isinstance(step, Alloc):
            live[step.name] = step.bytes
            peak = max(peak, sum(live.values()))
        elif isinstance(step, Free):
            del live[step.name]
    assert live_peak(cycle) == peak
