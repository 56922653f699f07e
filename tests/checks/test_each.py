"""What each check finds, what it does not, and what its fix saves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memfit.checks import run_checks
from memfit.model import (
    Advice,
    CallbackSpec,
    Finding,
    Severity,
    VecEnvSpec,
)
from memfit.units import GIB, MIB
from tests.checks.runs import READINGS, Run, dqn, ppo, with_workers

NO_LIMIT = 2**60
SAVING = (CallbackSpec(kind="save", every_steps=1000, saves_replay_buffer=True),)
COPYING = replace(READINGS, pickled_copies=1)


def found(code: str, run: Run, limit: int = NO_LIMIT) -> list[Finding]:
    return [f for f in run_checks(*run, limit)[0] if f.code == code]


def advised(code: str, run: Run, limit: int = NO_LIMIT) -> list[Advice]:
    return [a for a in run_checks(*run, limit)[1] if a.code == code]


# -- MF001 -----------------------------------------------------------------------------------------


def test_a_replay_that_is_never_full_is_reserved_and_not_resident() -> None:
    run = dqn(knobs={"total_timesteps": 10_000})
    (finding,) = found("MF001", run)
    assert finding.severity is Severity.INFO
    assert "5.26 GiB are reserved, 538 MiB become resident" in finding.message
    assert advised("MF001", run) == []  # what is not resident cannot be saved


def test_a_replay_that_is_never_full_costs_when_it_is_saved() -> None:
    run = dqn(knobs={"total_timesteps": 10_000}, callbacks=SAVING, readings=COPYING)
    (advice,) = advised("MF001", run)
    assert advice.change == "buffer_size=10000"
    assert advice.saves_bytes == 90_000 * 28_224


@pytest.mark.parametrize("run", [dqn(), ppo(), dqn(knobs={"total_timesteps": 100_000})])
def test_a_replay_that_fills_is_well(run: Run) -> None:
    assert found("MF001", run) == []


# -- MF002 -----------------------------------------------------------------------------------------


def test_a_run_that_dies_late_is_told_the_step() -> None:
    spec, ledger = dqn()
    (finding,) = found("MF002", (spec, ledger), 3 * GIB)
    assert finding.severity is Severity.ERROR
    step = int(finding.message.split("at step ")[1].split(" of")[0].replace(",", ""))
    assert ledger.at(total_timesteps=step).peak.bytes > 3 * GIB
    assert ledger.at(total_timesteps=step - 1).peak.bytes <= 3 * GIB
    assert f"of 1,000,000, when it has trained for {step / 1e6:.0%}" in finding.message


@pytest.mark.parametrize("limit", [1, 100 * MIB, NO_LIMIT])
def test_a_run_that_never_or_always_fits_does_not_die_late(limit: int) -> None:
    assert found("MF002", dqn(), limit) == []
    assert found("MF002", ppo(), limit) == []


# -- MF003 -----------------------------------------------------------------------------------------


def test_the_flatten_copy_is_named_where_it_is_the_peak() -> None:
    run = ppo()
    assert run[1].peak.moment == "update.flatten"
    (finding,) = found("MF003", run)
    assert "220 MiB of observations are there twice" in finding.message
    fewer, window = advised("MF003", run)
    assert fewer.change.startswith("n_steps=512")
    assert fewer.saves_bytes == 2 * 512 * 8 * 28_224 + 512 * 8 * 4
    assert "memfit.dropins.WindowRolloutBuffer" in window.change
    # The peak is then the minibatch, and each observation has a number that says where it begins.
    left = run[1].moment_bytes["update.minibatch"] + 1024 * 8 * 4
    assert window.saves_bytes == run[1].peak.bytes - left


@pytest.mark.parametrize("run", [ppo(knobs={"n_envs": 1}), ppo(knobs={"n_steps": 16}), dqn()])
def test_the_flatten_copy_is_silent_elsewhere(run: Run) -> None:
    assert found("MF003", run) == []


@pytest.mark.parametrize("buffer", ["MaskableRolloutBuffer", "WindowRolloutBuffer"])
def test_the_windowed_rollout_is_only_for_the_librarys_own(buffer: str) -> None:
    (advice,) = advised("MF003", ppo(buffer=buffer))
    assert advice.change.startswith("n_steps=512")


# -- MF004 -----------------------------------------------------------------------------------------


def test_a_large_minibatch_is_named() -> None:
    run = ppo(knobs={"batch_size": 4096, "n_steps": 512})
    (finding,) = found("MF004", run)
    assert finding.severity is Severity.INFO
    assert found("MF004", run, 500 * MIB)[0].severity is Severity.WARNING
    pieces, smaller = advised("MF004", run)
    # Pieces of half as many samples would save less than a fiftieth of the peak.
    assert pieces.change.startswith("memfit.dropins.MicroBatchPPO(..., micro_batch_size=256)")
    assert smaller.change.startswith("batch_size=2048")
    assert smaller.saves_bytes == 2048 * 100_000
    assert pieces.saves_bytes > smaller.saves_bytes
    assert pieces.to_rounding and not pieces.safe and not smaller.to_rounding


@pytest.mark.parametrize(("pieces", "name"), [(3000, "micro_batch_size"), (8192, "batch_size")])
def test_pieces_of_a_minibatch_are_made_smaller(pieces: int, name: str) -> None:
    knobs = {"batch_size": 4096, "n_steps": 512, "micro_batch_size": pieces}
    run = ppo(knobs=knobs, algorithm="MicroBatchPPO")
    (finding,) = found("MF004", run)
    assert f" grow with {name} {min(pieces, 4096):,}" in finding.message
    (advice,) = advised("MF004", run)
    half = min(pieces, 4096) // 2
    assert advice.change.startswith(f"micro_batch_size={half}:")
    assert advice.saves_bytes == half * 100_000


def test_a_micro_batch_is_only_for_ppo() -> None:
    run = ppo(knobs={"batch_size": 4096, "n_steps": 512}, algorithm="MaskablePPO")
    (advice,) = advised("MF004", run)
    assert advice.change.startswith("batch_size=2048")


def test_a_small_minibatch_is_not() -> None:
    assert found("MF004", ppo()) == []


# -- MF005 -----------------------------------------------------------------------------------------


def test_next_observations_are_the_replay_twice() -> None:
    run = dqn()
    (finding,) = found("MF005", run)
    assert "2.63 GiB" in finding.message
    shifted, window = advised("MF005", run)
    assert shifted.saves_bytes == 100_000 * 28_224
    assert "SB3#934" in shifted.change
    assert "memfit.dropins.WindowReplayBuffer" in window.change
    assert window.saves_bytes == 100_000 * (28_224 - 8)


@pytest.mark.parametrize("buffer", ["NStepReplayBuffer", "HerReplayBuffer"])
def test_it_is_not_advised_for_other_replays(buffer: str) -> None:
    assert found("MF005", dqn(buffer=buffer)) == []


def test_of_dict_observations_only_the_windowed_replay_stores_each_once() -> None:
    spec, _ = dqn()
    arrays = tuple(
        replace(a, name=f"{a.name}.{key}") for a in spec.arrays for key in ("left", "right")
    )
    run = dqn(buffer="DictReplayBuffer", arrays=arrays)
    (finding,) = found("MF005", run)
    assert "next_observations.left, model.replay_buffer.next_observations.right" in finding.where
    (advice,) = advised("MF005", run)
    assert "WindowReplayBuffer" in advice.change
    assert advice.saves_bytes == 2 * 100_000 * (28_224 - 8)


def test_it_is_not_advised_twice() -> None:
    spec, _ = dqn()
    assert found("MF005", dqn(arrays=spec.arrays[:1])) == []


# -- MF006 -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("start_method", ["forkserver", "spawn"])
def test_workers_that_import_again_are_named(start_method: str) -> None:
    run = with_workers(start_method, each=151 * MIB)
    (finding,) = found("MF006", run)
    assert "each of 8 workers holds 151 MiB" in finding.message
    forked, light = advised("MF006", run)
    assert forked.saves_bytes == 8 * (151 - 8) * MIB
    assert "memfit.dropins.LightVecEnv" in light.change
    imports = 226 * MIB * 2 // 3  # in the process of which its workers are forks
    assert light.saves_bytes == 8 * (151 - 8) * MIB - imports
    assert "an estimate" in forked.change and "an estimate" in light.change


def test_a_process_with_a_device_is_not_to_be_forked() -> None:
    spec, ledger = with_workers("spawn", 150 * MIB)
    on_cpu, on_device = (
        advised("MF006", (replace(spec, device=d), ledger)) for d in ("", "cuda:0")
    )
    assert [a.change.partition("(")[0].strip() for a in on_device] == [
        "vec_env_cls=memfit.dropins.LightVecEnv"
    ]
    assert len(on_cpu) == 2


def test_a_heavy_env_stays_heavy_when_forked() -> None:
    forked, light = advised("MF006", with_workers("forkserver", each=600 * MIB))
    imports = 226 * MIB * 2 // 3
    assert (forked.saves_bytes, light.saves_bytes) == (8 * imports, 7 * imports)


@pytest.mark.parametrize("run", [with_workers("fork", each=151 * MIB), ppo(), dqn()])
def test_other_vector_envs_are_not(run: Run) -> None:
    assert found("MF006", run) == []


# -- MF007 -----------------------------------------------------------------------------------------


def test_float64_observations_could_be_half() -> None:
    run = ppo(dtype="float64", frame=3000)
    (finding,) = found("MF007", run)
    assert finding.severity is Severity.WARNING
    (advice,) = advised("MF007", run)
    assert advice.saves_bytes == 2 * 1024 * 8 * 3000 * 4  # the rollout and its flatten copy
    assert "NarrowObservation" in advice.change


@pytest.mark.parametrize(("wrapper", "safe"), [("VecNormalize", False), ("VecMonitor", True)])
def test_rounding_before_a_running_mean_changes_training(wrapper: str, safe: bool) -> None:
    vec_env = VecEnvSpec(kind="DummyVecEnv", wrappers=(wrapper,))
    (advice,) = advised("MF007", ppo(dtype="float64", vec_env=vec_env))
    assert advice.safe is safe


def test_few_float64_observations_are_a_remark() -> None:
    (finding,) = found("MF007", ppo(dtype="float64", frame=3))
    assert finding.severity is Severity.INFO
    assert found("MF007", ppo()) == []


# -- MF008 -----------------------------------------------------------------------------------------


def test_a_batch_that_does_not_divide_is_named() -> None:
    (finding,) = found("MF008", ppo(knobs={"batch_size": 100}))
    assert "the last minibatch of each epoch has 92" in finding.message


@pytest.mark.parametrize("batch", [64, 8192, 10_000])
def test_one_that_divides_or_holds_all_is_not(batch: int) -> None:
    assert found("MF008", ppo(knobs={"batch_size": batch})) == []
    assert found("MF008", dqn(knobs={"batch_size": 7})) == []


# -- MF009 -----------------------------------------------------------------------------------------

OFTEN = CallbackSpec(kind="save", every_steps=10_000)
BEST = (
    CallbackSpec(kind="evaluate", every_steps=200_000, n_envs=1),
    CallbackSpec(kind="save", every_steps=200_000),
)


def test_frequencies_count_calls() -> None:
    (finding,) = found("MF009", ppo(callbacks=(OFTEN,)))
    assert finding.severity is Severity.INFO
    assert "every 80,000 steps; for every 10,000 steps use 1250" in finding.message
    (finding,) = found("MF009", ppo(callbacks=BEST))
    assert finding.severity is Severity.WARNING
    assert "eval_freq=200000" in finding.message
    assert "never reaches" in finding.message


def test_frequencies_are_right_with_one_env() -> None:
    assert found("MF009", ppo(callbacks=(OFTEN,), knobs={"n_envs": 1})) == []
    assert found("MF009", ppo()) == []


def test_frequencies_that_were_divided_are_right() -> None:
    divided = tuple(replace(callback, divided=True) for callback in (OFTEN, *BEST))
    assert found("MF009", ppo(callbacks=divided)) == []


def test_a_run_that_learns_again_may_reach_what_one_call_does_not() -> None:
    (finding,) = found("MF009", ppo(callbacks=BEST, learns_again=True))
    assert finding.severity is Severity.INFO
    assert "never" not in finding.message


# -- MF010 -----------------------------------------------------------------------------------------


def test_saving_the_replay_is_the_peak() -> None:
    run = dqn(callbacks=SAVING, readings=COPYING)
    assert run[1].peak.phase == "save"
    (finding,) = found("MF010", run)
    assert finding.severity is Severity.WARNING
    (advice,) = advised("MF010", run)
    assert 0 < advice.saves_bytes <= 100_000 * 28_224
    assert found("MF010", ppo(callbacks=SAVING, readings=COPYING)) == []
    assert found("MF010", dqn(readings=COPYING)) == []


def test_saving_the_replay_is_well_where_pickle_copies_nothing() -> None:
    assert found("MF010", dqn(callbacks=SAVING)) == []


# -- MF011 -----------------------------------------------------------------------------------------

STACKED = VecEnvSpec(kind="DummyVecEnv", wrappers=("VecFrameStack",), stack=4)


def test_stacked_frames_of_a_rollout_could_be_there_once() -> None:
    run = ppo(vec_env=STACKED)
    (finding,) = found("MF011", run)
    assert finding.severity is Severity.WARNING
    assert "stacks of 4 frames: each frame is stored 4 times" in finding.message
    (advice,) = advised("MF011", run)
    assert "memfit.dropins.WindowRolloutBuffer" in advice.change
    fewer = 1024 * 8 * 28_224 - (1024 + 3) * 8 * 7056 - 1024 * 8 * 4
    left = run[1].moment_bytes["update.minibatch"] - fewer
    assert advice.saves_bytes == run[1].peak.bytes - left


def test_stacked_frames_of_a_replay_could_be_there_once() -> None:
    run = dqn(vec_env=STACKED)
    (finding,) = found("MF011", run)
    assert "each frame is stored 8 times" in finding.message
    (advice,) = advised("MF011", run)
    assert "memfit.dropins.WindowReplayBuffer:" in advice.change
    assert advice.saves_bytes == 100_000 * (2 * 28_224 - 7056 - 8)


def test_a_replay_that_stores_next_observations_once_must_give_that_up() -> None:
    spec, _ = dqn()
    (advice,) = advised("MF011", dqn(vec_env=STACKED, arrays=spec.arrays[:1]))
    assert "WindowReplayBuffer without optimize_memory_usage:" in advice.change


def test_few_stacked_frames_are_a_remark() -> None:
    (finding,) = found("MF011", ppo(vec_env=STACKED, frame=8))
    assert finding.severity is Severity.INFO


@pytest.mark.parametrize("run", [ppo(vec_env=STACKED), dqn(vec_env=STACKED)])
def test_a_windowed_buffer_is_advised_once(run: Run) -> None:
    _, advice = run_checks(*run, NO_LIMIT)
    assert [a.code for a in advice if "memfit.dropins.Window" in a.change] == ["MF011"]


@pytest.mark.parametrize(
    "run",
    [
        ppo(),
        dqn(),
        ppo(vec_env=None),
        ppo(vec_env=STACKED, buffer="WindowRolloutBuffer"),
        ppo(vec_env=STACKED, buffer="DictRolloutBuffer"),
    ],
)
def test_other_runs_have_no_stacked_frames(run: Run) -> None:
    assert found("MF011", run) == []


def test_float32_is_no_longer_safe_before_observations_are_normalised() -> None:
    spec, ledger = dqn()
    arrays = tuple(replace(a, dtype="float64") for a in spec.arrays)
    for wrappers, safe in (((), True), (("VecNormalize",), False)):
        env = VecEnvSpec(kind="DummyVecEnv", wrappers=wrappers)
        run = replace(spec, arrays=arrays, vec_env=env), ledger
        (advice,) = advised("MF007", run)
        assert advice.safe is safe and advice.to_rounding is not safe
