"""A model that a factory made is planned, rehearsed and swept as that of a script is."""

from __future__ import annotations

from pathlib import Path

import pytest

from memfit.api.plan import plan
from memfit.api.sweep import sweep
from memfit.model import EvidenceKind, Outcome, Plan
from memfit.units import MIB

pytestmark = pytest.mark.torch

MODULE = """
import gymnasium as gym
import numpy as np
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.vec_env import DummyVecEnv

class Wide(gym.Env):
    observation_space = gym.spaces.Box(-1, 1, (4096,))
    action_space = gym.spaces.Discrete(2)
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(4096, np.float32), {}
    def step(self, action):
        return np.zeros(4096, np.float32), 0.0, False, False, {}

def on_policy():
    env = DummyVecEnv([Wide] * 4)
    return PPO("MlpPolicy", env, n_steps=512, batch_size=64, n_epochs=1, device="cpu")

def off_policy():
    return DQN("MlpPolicy", Wide(), buffer_size=2000, device="cpu")
"""
ROLLOUT = 4 * 512 * 4096 * 4  # bytes of its observations


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "made.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)


def update_rows(found: Plan) -> list[EvidenceKind]:
    rows = found.ledger.components
    return [c.evidence.kind for c in rows if c.name == "update.scratch"]


def test_an_on_policy_model_is_surveyed_not_assumed() -> None:
    found = plan("made:on_policy")
    assert update_rows(found) == [EvidenceKind.PROBED]
    assert not any("could not be run" in note for note in found.notes)
    assert "total_timesteps" not in found.ledger.knobs  # nobody said how long it learns


@pytest.mark.slow
def test_an_on_policy_model_is_rehearsed() -> None:
    found = plan("made:on_policy", probe=True)
    assert not any("did not finish" in note for note in found.notes)
    # the rollout, and the copy of it while it is flattened
    assert found.peak_bytes > 2 * ROLLOUT + 200 * MIB


@pytest.mark.slow
def test_an_off_policy_model_is_planned_with_its_replay_full() -> None:
    found = plan("made:off_policy")
    rows = {c.name: found.ledger.bytes_of(c) for c in found.ledger.components}
    assert rows["replay_buffer.observations"] == 2000 * 4096 * 4


@pytest.mark.slow
def test_a_sweep_of_a_factory_measures_updates_not_the_build() -> None:
    result = sweep(target="made:on_policy", over="n_steps=64,512", on=["2GiB"])
    assert [p.outcome for p in result.points] == [Outcome.DONE] * 2
    assert result.line is not None
    each = 2 * 4 * 4096 * 4  # a step of 4 envs, twice while the rollout is flattened
    assert result.line.bytes_per_unit == pytest.approx(each, rel=0.15)
