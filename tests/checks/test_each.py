"""What each check finds, what it does not, and what its fix saves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memfit.checks import run_checks
from memfit.model import Advice, CallbackSpec, Finding, Severity
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
    (advice,) = advised("MF003", run)
    assert advice.change.startswith("n_steps=512")
    assert advice.saves_bytes == 2 * 512 * 8 * 28_224 + 512 * 8 * 4


@pytest.mark.parametrize("run", [ppo(knobs={"n_envs": 1}), ppo(knobs={"n_steps": 16}), dqn()])
def test_the_flatten_copy_is_silent_elsewhere(run: Run) -> None:
    assert found("MF003", run) == []


# -- MF004 -----------------------------------------------------------------------------------------


def test_a_large_minibatch_is_named() -> None:
    run = ppo(knobs={"batch_size": 4096, "n_steps": 512})
    (finding,) = found("MF004", run)
    assert finding.severity is Severity.INFO
    assert found("MF004", run, 500 * MIB)[0].severity is Severity.WARNING
    (advice,) = advised("MF004", run)
    assert advice.change.startswith("batch_size=2048")
    assert advice.saves_bytes == 2048 * 100_000


def test_a_small_minibatch_is_not() -> None:
    assert found("MF004", ppo()) == []


# -- MF005 -----------------------------------------------------------------------------------------


def test_next_observations_are_the_replay_twice() -> None:
    run = dqn()
    (finding,) = found("MF005", run)
    assert "2.63 GiB" in finding.message
    (advice,) = advised("MF005", run)
    assert advice.saves_bytes == 100_000 * 28_224
    assert "SB3#934" in advice.change


@pytest.mark.parametrize("buffer", ["NStepReplayBuffer", "HerReplayBuffer", "DictReplayBuffer"])
def test_it_is_not_advised_where_the_library_refuses_it(buffer: str) -> None:
    assert found("MF005", dqn(buffer=buffer)) == []


def test_it_is_not_advised_twice() -> None:
    spec, _ = dqn()
    assert found("MF005", dqn(arrays=spec.arrays[:1])) == []


# -- MF006 -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("start_method", ["forkserver", "spawn"])
def test_workers_that_import_again_are_named(start_method: str) -> None:
    run = with_workers(start_method, each=151 * MIB)
    (finding,) = found("MF006", run)
    assert "each of 8 workers holds 151 MiB" in finding.message
    (advice,) = advised("MF006", run)
    assert advice.saves_bytes == 8 * (151 - 8) * MIB
    assert "an estimate" in advice.change


def test_a_heavy_env_stays_heavy_when_forked() -> None:
    (advice,) = advised("MF006", with_workers("forkserver", each=600 * MIB))
    assert advice.saves_bytes == 8 * (226 * MIB * 2 // 3)


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
