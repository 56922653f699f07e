"""The rows of hand-made runs: every byte worked out, and every moment's sum what was measured."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memfit.formulas.run_rows import run_ledger, run_rows
from memfit.formulas.shared_rows import BUILT
from memfit.model import (
    NO_SLOPE,
    CallbackSpec,
    Component,
    EvidenceKind,
    Kind,
    Ledger,
    OtherProcesses,
    Place,
    Readings,
    Replayed,
    RunSpec,
    Slope,
    VecEnvSpec,
    WindowSpec,
    WorkerReading,
)
from memfit.units import MIB
from tests.formulas.runs import GRAPHS, OFF_POLICY, ON_POLICY, READINGS, RING, WORDING

# The bytes of every row of `ON_POLICY` with `READINGS`.
BASE = {"base.imports": 30_000, "base.build": 17_000, "base.first_use": 12_960}
NETWORKS = {"policy.parameters": 1000, "policy.gradients": 900, "policy.optimizer": 2000}
ENVS = {"env.state": 2000}
ARRAYS = {"rollout.observations": 1280, "rollout.rewards": 128}
MAPPED = {"ring": 150, "shared_observations": 40}
FLATTEN = {"rollout.flatten_copy": 1280}
UPDATE = {"minibatch.inputs": 160, "update.activations": 1860, "update.scratch": 6880}
SLACK = {
    "allocator.slack.rollout": 4_692,
    "allocator.slack.flatten": 10_572,
    "allocator.slack.minibatch": 12_192,
}


def ledger(spec: RunSpec = ON_POLICY, readings: Readings = READINGS) -> Ledger:
    return run_ledger(spec, run_rows(spec, readings, WORDING))


def sizes_in(found: Ledger) -> dict[str, int]:
    return {c.name: found.bytes_of(c) for c in found.components}


def row(found: Ledger, name: str) -> Component:
    (one,) = (c for c in found.components if c.name == name)
    return one


def test_every_row_has_the_bytes_that_a_person_adds_up() -> None:
    """Of 50,000 where it stopped, 30,000 are imports, 1,000 parameters, 2,000 envs.

    What first use costs is what `warm` has more: 20,000, less 5,000 that malloc held free, 2,000
    of the optimizer and 40 of shared memory.
    """
    assert sizes_in(ledger()) == {
        **BASE,
        **NETWORKS,
        **ENVS,
        **ARRAYS,
        **FLATTEN,
        **MAPPED,
        **UPDATE,
        **SLACK,
    }


def test_rows_stand_in_a_persons_order() -> None:
    names = [c.name for c in ledger().components]
    assert names[:7] == [*BASE, *NETWORKS, "env.state"]
    assert names[7:12] == [a.name for a in ON_POLICY.arrays]
    assert names[12:] == [*UPDATE, *SLACK]


def test_each_moment_is_what_was_warm_and_what_the_run_grows_by() -> None:
    """The ring, which has its own mapping and fills while the run learns, comes on top."""
    moments = ledger().moment_bytes
    assert moments["start"] == 30_000
    assert moments["build"] == 30_000 + 17_000 + 1000 + 2000 + 150
    assert moments["rollout"] == 70_000 + 2_000 + 150
    assert moments["update.flatten"] == 70_000 + 9_160 + 150
    assert moments["update.minibatch"] == 70_000 + 18_400 + 150


def test_at_twice_the_size_the_growth_is_that_of_twice_the_size() -> None:
    """Up to what is lost by whole bytes a sample."""
    twice = ledger().at(n_steps=16, batch_size=32).moment_bytes
    assert twice["update.flatten"] == pytest.approx(70_000 + 9_320 + 150, abs=16)
    assert twice["update.minibatch"] == pytest.approx(70_000 + 24_800 + 150, abs=16)


FAR = Replayed(
    knobs={"n_steps": 8_000, "batch_size": 16_000},
    growth={"update.minibatch": 9_000_000, "update.flatten": 9_000_000},
)


def test_where_a_larger_run_was_replayed_the_growth_is_what_was_read_there() -> None:
    """Far from both sizes of the line that `growth` is, which would say 6,412,000."""
    found = ledger(readings=replace(READINGS, live=NO_SLOPE, further=(FAR,)))
    assert found.moment_bytes["update.minibatch"] == 70_000 + 18_400 + 150
    far = found.at(**FAR.knobs).moment_bytes
    assert far["update.minibatch"] == 70_000 + 9_000_000 + 150


def test_slack_that_falls_is_what_was_read_and_no_slope() -> None:
    growth = {"update.minibatch": Slope(fixed=20_000, per_unit=100)}
    slack = row(ledger(readings=replace(READINGS, growth=growth)), "allocator.slack.minibatch")
    assert str(slack.size) == "readings(bytes asked for; 12,308: 15,392; 18,516: 10,784)"
    assert slack.evidence.where.endswith("readings at 2 sizes, on straight lines between them")


def test_slack_that_stays_is_a_reading_at_this_size() -> None:
    growth = {"update.minibatch": Slope(fixed=12_000, per_unit=300)}
    fixed = replace(ON_POLICY, scale={})
    slack = row(ledger(fixed, replace(READINGS, growth=growth)), "allocator.slack.minibatch")
    assert slack.size.is_const
    assert slack.evidence.where.endswith("malloc: a reading at this size")


def test_scratch_that_gave_way_is_missed_nowhere_else() -> None:
    """Rows say 1,608 too much at the run's own size, and too little at another."""
    growth = {"update.minibatch": Slope(fixed=3_000, per_unit=100)}
    readings = replace(READINGS, growth=growth, further=(FAR,), live=Slope(fixed=5_000, per_unit=0))
    found = ledger(readings=readings)
    assert found.moment_bytes["update.minibatch"] == 70_000 + 4_600 + 150
    assert found.at(**FAR.knobs).moment_bytes["update.minibatch"] == 70_000 + 9_000_000 + 150


@given(
    st.integers(0, 20_000),
    st.integers(0, 500),
    st.integers(0, 3_000),
    st.integers(0, 4_000),
    st.integers(0, 400),
)
def test_a_moment_never_says_less_than_was_measured(
    fixed: int, per_unit: int, retained: int, live: int, each: int
) -> None:
    readings = replace(
        READINGS,
        retained=retained,
        live=Slope(fixed=live, per_unit=each),
        growth={"update.minibatch": Slope(fixed=fixed, per_unit=per_unit)},
    )
    found = ledger(readings=readings)
    measured = 70_000 + fixed + 16 * per_unit + 150
    said = found.moment_bytes["update.minibatch"]
    assert said >= measured
    if found.bytes_of(row(found, "update.scratch")):
        assert said == measured


def test_scratch_gives_way_where_rows_say_more_than_the_allocations_came_to() -> None:
    growth = {"update.minibatch": Slope(fixed=3_000, per_unit=100)}
    found = ledger(readings=replace(READINGS, growth=growth))
    assert sizes_in(found)["update.scratch"] == 6880 - 1608
    assert sizes_in(found)["allocator.slack.minibatch"] == 0
    assert found.moment_bytes["update.minibatch"] == 70_000 + 4_600 + 150


def test_only_scratch_gives_way() -> None:
    growth = {"update.minibatch": Slope(fixed=100, per_unit=0)}
    live = Slope(fixed=2_980, per_unit=0)
    readings = replace(READINGS, growth=growth, live=live, retained=0)
    sizes = sizes_in(ledger(readings=readings))
    # 2,980 less 900 of gradients are 2,080: what is named takes 2,020 of them.
    assert {name: sizes[name] for name in UPDATE} == {
        "minibatch.inputs": 160,
        "update.activations": 1860,
        "update.scratch": 0,
    }


def test_activations_that_do_not_fit_stay_in_the_scratch() -> None:
    found = sizes_in(ledger(readings=replace(READINGS, activations=Slope(fixed=0, per_unit=600))))
    assert "update.activations" not in found
    assert found["update.scratch"] == 6880 + 1860


def test_inputs_that_are_not_saved_are_no_part_of_the_activations() -> None:
    wording = replace(WORDING, inputs_are_saved=False, observations=2, activations="policy.saved")
    rows = run_rows(ON_POLICY, READINGS, wording)
    found = {c.name: c.size.evaluate(ON_POLICY.knobs) for c in rows}
    assert found["minibatch.inputs"] == 320
    assert found["policy.saved"] == 100 + 16 * 120
    assert found["update.scratch"] == 8900 - 320 - 2020


def test_without_a_trace_there_is_no_row_of_activations() -> None:
    found = sizes_in(ledger(readings=replace(READINGS, activations=None)))
    assert "update.activations" not in found
    assert found["update.scratch"] == 8900 - 160


# -- base ----------------------------------------------------------------------------------------


def test_where_imports_were_not_measured_all_is_imports() -> None:
    found = sizes_in(ledger(readings=replace(READINGS, base=0)))
    assert (found["base.imports"], found["base.build"]) == (50_000, 0)
    assert found["base.first_use"] == 70_000 - 5_000 - 50_000 - 5_040


def test_only_what_is_worth_a_row_is_told_of_what_building_loads() -> None:
    readings = replace(
        READINGS,
        stopped=60 * MIB,
        warm=70 * MIB,
        imported={"small": 3 * MIB, "torch._dynamo": 20 * MIB},
        held={"prices": 5 * MIB},
    )
    found = sizes_in(ledger(readings=readings))
    assert found["base.imported.torch._dynamo"] == 20 * MIB
    assert found["base.held.prices"] == 5 * MIB
    assert "base.imported.small" not in found
    whole = sizes_in(ledger(readings=replace(readings, imported={}, held={})))
    assert whole["base.build"] == found["base.build"] + 25 * MIB


def test_imports_are_no_more_than_where_it_stopped() -> None:
    found = sizes_in(ledger(readings=replace(READINGS, base=60_000)))
    assert (found["base.imports"], found["base.build"]) == (50_000, 0)


# -- envs and workers ----------------------------------------------------------------------------


def with_workers(workers: WorkerReading) -> tuple[RunSpec, Readings]:
    started = workers.started_bytes
    readings = replace(
        READINGS, stopped=50_000 + started, warm=70_000 + started, workers=workers, env_each=0
    )
    vec_env = VecEnvSpec(kind="SubprocVecEnv", start_method="forkserver")
    return replace(ON_POLICY, vec_env=vec_env), readings


def test_workers_of_one_env_each_are_as_many_as_envs() -> None:
    """Three were started: of these, one costs 700."""
    found = ledger(*with_workers(WorkerReading(started=3, each_bytes=700, shared_bytes=60)))
    sizes = sizes_in(found)
    assert "env.state" not in sizes and "workers.envs" not in sizes
    assert (sizes["workers.private"], sizes["workers.helpers"]) == (2_800, 60)
    assert (sizes["base.build"], sizes["base.first_use"]) == (19_000, 12_960)
    assert row(found, "workers.private").place is Place.WORKERS
    assert row(found, "workers.private").evidence.where == (
        "3 real forkserver worker(s) of SubprocVecEnv (private pages), times n_envs"
    )
    assert found.moment_bytes["rollout"] == 70_000 + 2_000 + 150 + 2_860
    assert found.one_more(row(found, "workers.private"), "n_envs") == 700


def test_workers_of_several_envs_do_not_grow_with_them() -> None:
    workers = WorkerReading(started=2, each_bytes=300, shared_bytes=60, envs=4, env_bytes=500)
    found = ledger(*with_workers(workers))
    sizes = sizes_in(found)
    assert sizes["workers.envs"] == 2_000
    assert (sizes["workers.private"], sizes["workers.helpers"]) == (600, 60)
    assert found.one_more(row(found, "workers.envs"), "n_envs") == 500
    assert found.one_more(row(found, "workers.private"), "n_envs") == 0
    assert found.moment_bytes["rollout"] == 70_000 + 2_000 + 150 + 2_660


@pytest.mark.parametrize(
    ("count", "for_envs", "more"),
    [(4, True, 200), (2, True, 200), (1, True, 0), (3, True, 0), (4, False, 0)],
)
def test_other_processes_grow_with_the_envs_that_they_share_out(
    count: int, for_envs: bool, more: int
) -> None:
    """They hold 800 together, and four envs; nothing of that is the main process's."""
    others = OtherProcesses(
        name="forks", count=count, private_bytes=800, what="forks", for_envs=for_envs
    )
    readings = replace(READINGS, stopped=50_800, warm=70_800, others=(others,))
    found = ledger(readings=readings)
    forks = row(found, "workers.forks")
    assert sizes_in(found)["workers.forks"] == 800
    assert forks.place is Place.WORKERS
    assert found.one_more(forks, "n_envs") == more
    assert ("grow with n_envs" in forks.evidence.where) == bool(more)
    without = sizes_in(ledger())
    assert sizes_in(found)["base.build"] == without["base.build"]
    assert sizes_in(found)["base.first_use"] == without["base.first_use"]


def test_an_env_that_costs_nothing_has_no_row() -> None:
    assert "env.state" not in sizes_in(ledger(readings=replace(READINGS, env_each=0)))


# -- arrays, windows, graphs ---------------------------------------------------------------------


def test_an_array_tells_where_it_lies_and_who_says_so() -> None:
    found = ledger()
    shared = row(found, "shared_observations")
    assert (shared.place, shared.kind) == (Place.SHARED, Kind.COPIES)
    assert shared.evidence.kind is EvidenceKind.ASSUMED and shared.evidence.where == "a person"
    assert shared.reserved is not None and shared.reserved.evaluate(found.knobs) == 100
    own = row(found, "rollout.observations")
    assert (own.place, own.reserved) == (Place.MAIN, None)
    assert own.evidence.kind is EvidenceKind.DERIVED


def test_shared_memory_that_the_survey_did_not_make_is_no_part_of_what_was_warm() -> None:
    """A spec's array is made when the run trains, and replayed with the others."""
    arrays = tuple(replace(a, mapped=False) for a in ON_POLICY.arrays)
    spec = replace(ON_POLICY, arrays=arrays)
    assert sizes_in(ledger(spec))["base.first_use"] == 12_960 + 40
    assert ledger(spec).moment_bytes["rollout"] == 70_000 + 2_000


def test_windows_are_stored_once_and_are_not_mallocs() -> None:
    window = WindowSpec(name="rollout_buffer.frames", length=4, new=1, row_bytes=10)
    found = ledger(replace(ON_POLICY, windows=(window,)))
    # Each of four envs: a window of four rows and seven steps of one; a start for each of 32 steps.
    assert sizes_in(found)["rollout_buffer.frames"] == 4 * (4 + 7) * 10 + 32 * 4
    assert found.moment_bytes["rollout"] == 70_000 + 2_000 + 150 + 568
    assert sizes_in(found)["allocator.slack.rollout"] == SLACK["allocator.slack.rollout"]


GRAPH_READINGS = Readings(
    stopped=5_000, warm=9_000, unit=15, base=5_000, graph=Slope(fixed=100, per_unit=20)
)


def test_a_rollout_that_records_gradients_keeps_its_graphs() -> None:
    """Five steps of three agents: 5 * 100 + 15 * 20 bytes, twice until an update is over."""
    found = ledger(GRAPHS, GRAPH_READINGS)
    graph, last = row(found, "rollout.graph"), row(found, "rollout.last_graph")
    assert found.bytes_of(graph) == found.bytes_of(last) == 800
    assert (graph.phases, last.phases) == (("rollout", "update"), ("rollout",))
    assert found.at(steps=10).bytes_of(graph) == 1600
    assert {c.name for c in ledger(ON_POLICY).components}.isdisjoint({graph.name, last.name})


def test_a_graph_that_is_dropped_at_once_has_one_row() -> None:
    spec = replace(GRAPHS, update=replace(GRAPHS.update, keeps_last_graph=False))
    names = {c.name for c in ledger(spec, GRAPH_READINGS).components}
    assert "rollout.graph" in names and "rollout.last_graph" not in names


# -- evaluation and saving -----------------------------------------------------------------------

EVALUATES, SAVES = CallbackSpec(kind="evaluate"), CallbackSpec(kind="save")
SAVES_REPLAY = replace(SAVES, saves_replay_buffer=True)
BESIDE = replace(READINGS, evaluate_bytes=333, save_bytes=444, pickled_copies=2)


def test_phases_that_the_run_does_not_have_are_left_out() -> None:
    only_saved = replace(RING, name="checkpoint", phases=("save",))
    found = ledger(replace(ON_POLICY, arrays=(only_saved, *ON_POLICY.arrays)), BESIDE)
    assert set(found.phase_bytes) == {"start", "build", "rollout", "update"}
    assert "checkpoint" not in sizes_in(found)
    assert row(found, "base.imports").phases == ("start", "build", "rollout", "update")
    assert set(ledger(replace(OFF_POLICY, arrays=())).phase_bytes) == {"start", "build", "update"}


def test_evaluation_and_saving_have_rows_where_callbacks_ask_for_them() -> None:
    found = ledger(replace(ON_POLICY, callbacks=(EVALUATES, SAVES_REPLAY)), BESIDE)
    sizes = sizes_in(found)
    assert (sizes["evaluate.env"], sizes["save.model"]) == (333, 444)
    assert "save.replay_copy" not in sizes  # an on-policy run has none
    assert row(found, "evaluate.env").phases == ("rollout", "update", "evaluate", "save")
    assert row(found, "save.model").phases == ("save",)
    assert row(found, "ring").phases == BUILT
    # What malloc held in the rollout, it holds while saving.
    assert found.moment_bytes["save"] == found.moment_bytes["rollout"] + 444
    assert found.moment_bytes["evaluate"] == found.moment_bytes["rollout"]


def test_a_replay_buffer_is_saved_with_copies_of_its_largest_array() -> None:
    found = ledger(replace(OFF_POLICY, callbacks=(SAVES_REPLAY,)), BESIDE)
    assert sizes_in(found)["save.replay_copy"] == 2 * 33 * 3 * 10
    assert "save.replay_copy" not in sizes_in(
        ledger(replace(OFF_POLICY, callbacks=(SAVES,)), BESIDE)
    )


# -- where no update could be run ----------------------------------------------------------------


def test_what_is_assumed_says_so() -> None:
    found = ledger(readings=replace(READINGS, assumed=True, growth={}))
    scratch = row(found, "update.scratch")
    assert scratch.evidence.kind is EvidenceKind.ASSUMED
    assert not [c for c in found.components if c.kind is Kind.FRAGMENTATION]
    assert row(ledger(), "update.scratch").evidence.kind is EvidenceKind.PROBED


def test_a_ledger_knows_the_length_and_the_first_update() -> None:
    found = ledger()
    assert (found.length, found.first_update.evaluate(found.knobs)) == ("total_timesteps", 32)
    assert found.knobs == ON_POLICY.knobs
