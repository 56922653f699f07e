"""Formulas of a loop's arrays: derived where a second trial agrees, gone where it does not."""

from __future__ import annotations

from dataclasses import replace

from memfit.analyses.second_trial import (
    other_values,
    row_values,
    with_numbers,
    with_second,
)
from memfit.model import ArraySpec, EvidenceKind, Readings, RunSpec
from memfit.model.trial import TrialEnd, TrialReading

TRIAL = TrialReading(updates=1, cycles=1, env_steps=1, seconds=1.0, ended=TrialEnd.SEEN)
READINGS = Readings(stopped=0, warm=0, unit=1, trial=TRIAL)
KNOBS = {"num_steps": 128, "num_envs": 16, "frames": 16}


def spec(*shape: int | str, **knobs: int) -> RunSpec:
    array = ArraySpec(name="obs", shape=shape, dtype="u1", itemsize=1, evidence=EvidenceKind.PROBED)
    return RunSpec(
        library="loop",
        version="",
        algorithm="",
        policy="",
        knobs=knobs,
        settings=knobs,
        scale=knobs,
        on_policy=True,
        arrays=(array,),
    )


def test_neighbours_get_smaller_by_different_factors() -> None:
    values = other_values(spec("num_steps", "num_envs", **KNOBS))
    assert values == {"num_steps": 64, "num_envs": 4, "frames": 8}
    assert other_values(spec(1, one=1)) == {}


def test_a_formula_that_holds_is_derived() -> None:
    run = spec("num_steps", "num_envs", **KNOBS)
    again = spec(64, 4, num_steps=64, num_envs=4, frames=8)
    found, readings = with_second(run, READINGS, again, READINGS)
    assert found.arrays[0].shape == ("num_steps", "num_envs")
    assert found.arrays[0].evidence is EvidenceKind.DERIVED
    assert set(found.knobs) == set(found.scale) == {"num_steps", "num_envs"}
    assert readings.trial is not None and readings.trial.again is not None


def test_a_dimension_that_stayed_is_no_setting() -> None:
    run = spec("num_steps", "frames", **KNOBS)
    again = spec(64, 16, num_steps=64, num_envs=4, frames=8)
    found, _ = with_second(run, READINGS, again, READINGS)
    assert found.arrays[0].shape == ("num_steps", 16)
    assert found.arrays[0].evidence is EvidenceKind.DERIVED


def test_an_array_that_was_not_seen_again_stays_probed() -> None:
    run = spec("num_steps", **KNOBS)
    again = replace(run, arrays=())
    found, _ = with_second(run, READINGS, again, READINGS)
    assert found.arrays[0].evidence is EvidenceKind.PROBED


def test_a_setting_that_shapes_networks_is_a_number() -> None:
    def with_network(run: RunSpec, size: int) -> RunSpec:
        net = ArraySpec(name="net", shape=(size,), dtype="u1", itemsize=1, kind="parameters")
        return replace(run, arrays=(*run.arrays, net))

    run = with_network(spec("num_steps", "frames", **KNOBS), 100)
    again = with_network(spec(64, 8, num_steps=64, num_envs=4, frames=8), 50)
    found, _ = with_second(run, READINGS, again, READINGS)
    assert found.arrays[0].shape == ("num_steps", 16) and set(found.scale) == {"num_steps"}
    same = replace(again, arrays=(again.arrays[0], run.arrays[1]))
    found, _ = with_second(run, READINGS, same, READINGS)
    assert found.arrays[0].shape == ("num_steps", "frames")


def test_rows_can_be_made_smaller_alone() -> None:
    run = spec("num_steps", "num_envs", "frames", **KNOBS)
    assert row_values(run) == {"num_steps": 64}
    kept = with_numbers(run, {"num_envs", "frames"})
    assert kept.arrays[0].shape == ("num_steps", 16, 16) and set(kept.knobs) == {"num_steps"}
