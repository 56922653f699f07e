"""The sequence of a run's allocations, step by step, from cycles made by hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import cycle as in_turn
from itertools import islice

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memfit.measure.survey.cycle import ALIGNED, FREE, FREE_OLD, PLAIN, Cycle
from memfit.measure.survey.recorded_allocations import AllocationEvent
from memfit.measure.survey.replay_steps import (
    Alloc,
    Free,
    FreeKept,
    Moment,
    Play,
    Run,
    Step,
)
from memfit.measure.survey.run_steps import ALWAYS_MAPPED, MOST_STEPS, run_steps
from memfit.model.training import FEW_STEPS, HeldArray, Sizes
from tests.measure.survey.recordings import recordings


def cycle_of(
    acts: Iterable[tuple[int, int]],
    sizes: Iterable[int],
    *,
    left: tuple[int, ...] = (),
    kept: tuple[int, ...] = (),
    forward: int | None = None,
) -> Cycle:
    kinds, slots = zip(*acts, strict=True)
    return Cycle(
        kinds=np.array(kinds),
        slots=np.array(slots),
        sizes=np.array(list(sizes)),
        left=left,
        kept=kept,
        forward=forward,
    )


def spelled(run: Run) -> Iterator[Step]:
    """Every block of a run by its own name; what was never asked for is not given back."""
    played: set[object] = set()
    repeated = islice(in_turn((run.odd, run.even)), run.iterations - 1)
    for part in (run.first, *repeated, run.last):
        for step in part:
            if isinstance(step, Play):
                played.add(step.name)
                yield from _acts(step, release_old=step.old in played)
            elif isinstance(step, FreeKept):
                if step.name in played:
                    yield from (Free((step.name, slot)) for slot in step.cycle.kept)
            else:
                yield step


def _acts(play: Play, *, release_old: bool) -> Iterator[Step]:
    cycle = play.cycle
    for kind, slot in zip(cycle.kinds[play.part], cycle.slots[play.part], strict=True):
        if kind in (PLAIN, ALIGNED):
            yield Alloc((play.name, int(slot)), int(cycle.sizes[slot]))
        elif kind == FREE:
            yield Free((play.name, int(slot)))
        elif release_old:
            yield Free((play.old, int(slot)))


# Blocks of an update: a small one, two of its tensors, of which the next time replaces one.
UPDATE = cycle_of(
    [(PLAIN, 0), (ALIGNED, 1), (FREE, 0), (ALIGNED, 2), (FREE, 1), (FREE_OLD, 2)],
    [5, 10, 20],
    left=(2,),
    forward=4,
)
# A step of a rollout: a graph that stays, and an action that the next step replaces.
ROLLOUT = cycle_of([(ALIGNED, 0), (ALIGNED, 1), (FREE_OLD, 1)], [8, 6], left=(0, 1), kept=(0,))
TRAINING = ("rollout", "update")


def updated(iteration: int, *, graph: Iterable[Step] = ()) -> list[Step]:
    """What `UPDATE` asks for; `graph` is what goes when its forward pass is done."""
    name = ("update", iteration)
    last: list[Step] = [Free((("update", iteration - 1), 2))] if iteration else []
    return [
        Alloc((name, 0), 5),
        Alloc((name, 1), 10),
        Free((name, 0)),
        Alloc((name, 2), 20),
        *graph,
        Free((name, 1)),
        *last,
    ]


def steps(sizes: Sizes, *, rollout: Cycle | None = None, iterations: int = 2) -> list[Step]:
    run = run_steps(sizes=sizes, update=UPDATE, rollout=rollout, iterations=iterations)
    return list(spelled(run))


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


def test_the_last_minibatch_of_an_epoch_may_have_fewer_samples() -> None:
    """It replaces what the full ones left, and the next iteration's replace what it left."""
    fewer = UPDATE.scaled(1, 5)
    run = run_steps(
        sizes=Sizes(unit=1, width=5, rest=1), update=UPDATE, rest=fewer, rollout=None, iterations=2
    )
    found = [step for step in spelled(run) if isinstance(step, Alloc | Free)]
    full, rest = (("update", 0), 2), (("update", 1), 2)
    tensors = [step for step in found if step.name in (full, rest)]
    assert tensors == [
        Alloc(full, 20),
        Alloc(rest, 4),
        Free(full),
        Alloc(full, 20),
        Free(rest),
        Alloc(rest, 4),
        Free(full),
    ]


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
        Alloc((first, 0), 8),
        Alloc((first, 1), 6),
        *([last] if last else []),
        Alloc((second, 0), 8),
        Alloc((second, 1), 6),
        Free((first, 1)),
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


FIRST_GRAPH: list[Step] = [Free((("rollout", 0, 0), 0)), Free((("rollout", 0, 1), 0))]
SECOND_GRAPH: list[Step] = [Free((("rollout", 1, 0), 0)), Free((("rollout", 1, 1), 0))]


def test_a_graph_goes_after_its_update() -> None:
    assert steps(graphs(keeps_last_graph=False), rollout=ROLLOUT) == [
        Moment("rollout"),
        Moment("rollout"),
        *stepped(0, None),
        Moment("update"),
        *updated(0),
        *FIRST_GRAPH,
        Moment("rollout"),
        *stepped(1, Free((("rollout", 0, 1), 1))),
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
        *stepped(1, Free((("rollout", 0, 1), 1))),
        Moment("update"),
        *updated(1, graph=FIRST_GRAPH),
        Moment("rollout"),
    ]


def asked(found: Iterable[Step], first: str) -> list[int]:
    """The bytes of every block that belongs there."""
    return [s.bytes for s in found if isinstance(s, Alloc) and first in str(s.name)]


def test_many_steps_of_a_graph_are_fewer_and_larger() -> None:
    sizes = Sizes(unit=1, width=1, collects=True, steps=3 * MOST_STEPS, records_gradients=True)
    found = steps(sizes, rollout=ROLLOUT, iterations=1)
    assert asked(found, "rollout") == [24, 18] * MOST_STEPS


def test_few_steps_of_a_rollout_that_keeps_nothing_are_enough() -> None:
    rollout = cycle_of([(PLAIN, 0), (FREE, 0)], [8])
    sizes = Sizes(unit=1, width=1, collects=True, steps=3 * MOST_STEPS)
    assert asked(steps(sizes, rollout=rollout, iterations=1), "rollout") == [8] * FEW_STEPS


def test_an_array_of_many_pieces_has_fewer_and_larger_ones() -> None:
    array = HeldArray(name="flights", bytes=1000 * MOST_STEPS, pieces=10_000, phases=TRAINING)
    found = steps(Sizes(unit=1, width=1, collects=True, arrays=(array,)), iterations=1)
    assert asked(found, "rows") == [1000] * MOST_STEPS


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
    rest=st.booleans(),
    arrays=st.lists(held_arrays, max_size=2, unique_by=lambda a: a.name),
    steps_each=st.integers(1, 5),
    records=st.booleans(),
    keeps=st.booleans(),
    iterations=st.integers(1, 5),
)
def test_no_block_is_asked_for_while_it_is_there_or_released_while_it_is_not(
    update: list[AllocationEvent],
    rollout: list[AllocationEvent] | None,
    rest: bool,
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
    cycle = Cycle.of(update)
    run = run_steps(
        sizes=sizes,
        update=cycle,
        rest=cycle.scaled(1, 2) if rest else None,
        rollout=Cycle.of(rollout) if rollout else None,
        iterations=iterations,
    )
    for step in spelled(run):
        if isinstance(step, Alloc):
            assert step.name not in alive
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
    run = run_steps(sizes=Sizes(unit=1, width=1), update=cycle, rollout=None, iterations=3)
    for step in spelled(run):
        if isinstance(step, Alloc):
            live[step.name] = step.bytes
            peak = max(peak, sum(live.values()))
        elif isinstance(step, Free):
            del live[step.name]
    assert cycle.live_peak == peak
