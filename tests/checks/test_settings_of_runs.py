"""Checks of what a run asks for: of its algorithm, and of the machine it is planned on."""

from __future__ import annotations

import pytest

from memfit.checks import run_checks
from memfit.checks.processes import idle_hardware, more_than_cores
from memfit.model import CallbackSpec, Finding, Severity
from memfit.units import GIB, MIB
from tests.checks.runs import Run, dqn, ppo, with_workers

SAVING = (CallbackSpec(kind="save", every_steps=1000, saves_replay_buffer=True),)


def found(code: str, run: Run, limit: int = 64 * GIB) -> list[Finding]:
    return [f for f in run_checks(*run, limit, {code})[0] if f.code == code]


def test_a_batch_above_the_rollout_is_named() -> None:
    (finding,) = found("MF301", ppo(knobs={"n_envs": 1, "n_steps": 32}))
    assert finding.message == "batch_size 64 is above the rollout of 32 samples"
    assert found("MF301", ppo(knobs={"n_envs": 1, "n_steps": 64})) == []
    assert found("MF301", dqn(knobs={"n_steps": 1})) == []  # it has no rollout


def test_a_rollout_above_the_run_is_named() -> None:
    (finding,) = found("MF302", ppo(knobs={"total_timesteps": 8191}))
    assert finding.message == "a rollout of 8,192 steps is longer than the run of 8,191"
    assert found("MF302", ppo(knobs={"total_timesteps": 8192})) == []
    assert found("MF302", ppo(knobs={"total_timesteps": 8191}, learns_again=True)) == []


def test_a_replay_that_is_saved_where_there_is_none_is_named() -> None:
    (finding,) = found("MF305", ppo(callbacks=SAVING))
    assert finding.where == "callback: save_replay_buffer=True"
    assert found("MF305", ppo()) == []
    assert found("MF305", dqn(callbacks=SAVING)) == []


def test_workers_are_counted_against_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = with_workers("forkserver", each=50 * MIB)
    monkeypatch.setattr(more_than_cores, "cores", lambda: 4)
    (finding,) = found("MF403", workers)
    assert finding.severity is Severity.INFO
    assert finding.message == "8 workers share 4 cores of this machine"
    assert finding.bytes == 8 * 50 * MIB
    assert found("MF403", ppo()) == []  # its envs are in one process
    monkeypatch.setattr(more_than_cores, "cores", lambda: 5)
    assert found("MF403", workers) == []


def test_more_envs_that_would_fit_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle_hardware, "cores", lambda: 16)
    run = ppo()
    (finding,) = found("MF407", run)
    assert finding.message.startswith("16 envs would take ")
    assert finding.message.endswith("of 64.0 GiB: there are 8")
    twice = run[1].at(n_envs=16).peak.bytes
    assert found("MF407", run, 2 * twice) != []
    assert found("MF407", run, 2 * twice - 1) == []
    monkeypatch.setattr(idle_hardware, "cores", lambda: 15)
    assert found("MF407", run) == []
    assert run_checks(*run, 64 * GIB)[0] == tuple(  # it is off unless its whole code is asked for
        f for f in run_checks(*run, 64 * GIB)[0] if f.code != "MF407"
    )
