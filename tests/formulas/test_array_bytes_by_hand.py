"""Bytes of arrays, and sizes of runs, that a person has worked out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memfit.formulas.array_bytes import (
    collects,
    reserved,
    resident,
    row_bytes,
    rows,
    scaled,
    sizes,
    unit,
    width,
)
from memfit.model import ArraySpec, RunSpec, UpdateSpec
from memfit.model.training import HeldArray, Sizes
from tests.formulas.runs import GRAPHS, OBSERVATIONS, OFF_POLICY, ON_POLICY, REWARDS, RING, SLOTS

KNOBS = {"n_envs": 4, "n_steps": 8}


def array(*shape: int | str, itemsize: int = 4, filled: int | str | None = None) -> ArraySpec:
    return ArraySpec(name="a", shape=shape, dtype="?", itemsize=itemsize, filled=filled)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [  # rows, bytes of a row, reserved, resident
        (OBSERVATIONS, (8, 160, 1280, 1280)),
        (REWARDS, (8, 16, 128, 128)),
        (RING, (100, 3, 300, 150)),
        (SLOTS, (5, 20, 100, 40)),
        (array(), (1, 4, 4, 4)),
        (array(7), (7, 4, 28, 28)),
        (array("n_steps"), (8, 4, 32, 32)),
        (array("n_steps + 1", "n_envs * 2", 3, itemsize=8), (9, 192, 1728, 1728)),
        (array(10, 6, filled="n_steps - 5"), (10, 24, 240, 72)),
        (array(10, 6, filled=99), (10, 24, 240, 240)),
        (array(10, 0), (10, 0, 0, 0)),
        (array("n_steps", filled=0), (8, 4, 32, 0)),
    ],
)
def test_an_array_has_these_bytes(spec: ArraySpec, expected: tuple[int, ...]) -> None:
    found = (rows, row_bytes, reserved, resident)
    assert tuple(f(spec, KNOBS).evaluate(KNOBS) for f in found) == expected


def test_a_formula_is_over_the_knobs() -> None:
    size = reserved(OBSERVATIONS, KNOBS)
    assert size.knobs == {"n_steps", "n_envs"}
    assert size.evaluate({"n_envs": 1, "n_steps": 3}) == 120


def with_update(spec: RunSpec, **changes: object) -> RunSpec:
    return replace(spec, update=UpdateSpec(**{**vars(spec.update), **changes}))


def micro(batch_size: int, micro_batch_size: int) -> RunSpec:
    knobs = {**ON_POLICY.knobs, "batch_size": batch_size, "micro_batch_size": micro_batch_size}
    spec = replace(ON_POLICY, knobs=knobs)
    return with_update(spec, minibatch="min(batch_size, micro_batch_size)")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [  # width, unit
        (ON_POLICY, (16, 16)),
        (replace(ON_POLICY, knobs={**ON_POLICY.knobs, "batch_size": 99}), (32, 32)),
        (OFF_POLICY, (16, 16)),
        (GRAPHS, (15, 15)),
        (with_update(GRAPHS, minibatch="agents"), (3, 15)),
        (micro(16, 4), (4, 4)),
        (micro(16, 64), (16, 16)),
    ],
)
def test_so_many_samples_go_through_at_once(spec: RunSpec, expected: tuple[int, int]) -> None:
    assert (width(spec).evaluate(spec.knobs), unit(spec).evaluate(spec.knobs)) == expected


def test_a_run_collects_where_arrays_or_networks_have_a_rollout() -> None:
    assert collects(ON_POLICY)
    assert collects(GRAPHS)
    assert collects(replace(GRAPHS, arrays=()))  # its networks are called in the rollout
    bare = replace(GRAPHS, arrays=(), update=UpdateSpec(batch="agents"))
    assert not collects(bare)
    assert not collects(replace(bare, arrays=(replace(REWARDS, phases=("update",)),)))
    assert collects(replace(bare, arrays=(REWARDS,)))


def test_sizes_of_an_on_policy_run() -> None:
    """Neither the flatten copy, which its array's copying stands for, nor what is mapped."""
    assert sizes(ON_POLICY, ON_POLICY.knobs) == Sizes(
        unit=16,
        width=16,
        minibatches=2,
        collects=True,
        moment="update.minibatch",
        arrays=(
            HeldArray(
                name="rollout.observations",
                bytes=1280,
                phases=OBSERVATIONS.phases,
                copied_in="update.flatten",
            ),
            HeldArray(name="rollout.rewards", bytes=128, phases=REWARDS.phases),
        ),
    )


def test_sizes_of_an_off_policy_run() -> None:
    """Its replay holds 33 steps of three envs, though 67 are made."""
    found = sizes(OFF_POLICY, OFF_POLICY.knobs)
    rewards = HeldArray(name="replay.rewards", bytes=33 * 3 * 4, phases=REWARDS.phases)
    assert found == Sizes(unit=16, width=16, minibatches=1, collects=True, arrays=(rewards,))
    shorter = sizes(OFF_POLICY, {**OFF_POLICY.knobs, "total_timesteps": 10})
    assert shorter.arrays[0].bytes == 4 * 3 * 4


def test_sizes_of_a_run_that_keeps_graphs() -> None:
    assert sizes(GRAPHS, {"agents": 4, "steps": 6}) == Sizes(
        unit=24,
        width=24,
        minibatches=1,
        collects=True,
        collected=4,
        steps=6,
        iterations=7,
        records_gradients=True,
        keeps_last_graph=True,
        arrays=(
            HeldArray(name="flights", bytes=4 * 6 * 2 * 4, pieces=6, phases=("rollout", "update")),
        ),
    )


def test_steps_that_no_network_sees_are_none() -> None:
    spec = with_update(GRAPHS, rollout=0)
    assert sizes(spec, spec.knobs).steps == 0


@pytest.mark.parametrize(
    ("batch_size", "micro_batch_size", "minibatches"),
    [(16, 4, 8), (16, 5, 7), (16, 16, 2), (12, 12, 3)],
)
def test_the_last_minibatch_counts_too(
    batch_size: int, micro_batch_size: int, minibatches: int
) -> None:
    spec = micro(batch_size, micro_batch_size)
    assert sizes(spec, spec.knobs).minibatches == minibatches


def test_an_array_has_at_least_one_piece() -> None:
    spec = replace(GRAPHS, arrays=(replace(GRAPHS.arrays[0], pieces="steps - 5"),))
    assert sizes(spec, spec.knobs).arrays[0].pieces == 1


def test_scaled() -> None:
    assert scaled(ON_POLICY) == {"n_steps": 8, "batch_size": 16}
    assert scaled(ON_POLICY, times=2) == {"n_steps": 16, "batch_size": 32}
    assert scaled(ON_POLICY, shrink=3) == {"n_steps": 2, "batch_size": 5}
    assert scaled(ON_POLICY, shrink=1024) == {"n_steps": 2, "batch_size": 2}
    assert scaled(replace(ON_POLICY, scale={})) == {}
