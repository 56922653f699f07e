"""Of many subprocess workers few are started, and the others' answers are their own to change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memfit.cli import main

SCRIPT = """
import gymnasium as gym
import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import SubprocVecEnv, VecFrameStack, VecTransposeImage

class Short(gym.Env):
    observation_space = gym.spaces.Box(0, 255, (40, 36, 3), np.uint8)
    action_space = gym.spaces.Discrete(2)
    steps = 0
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros((40, 36, 3), np.uint8), {}
    def step(self, action):
        self.steps += 1
        return np.zeros((40, 36, 3), np.uint8), 0.0, self.steps == 3, False, {}

if __name__ == "__main__":
    env = VecTransposeImage(VecFrameStack(SubprocVecEnv([Short] * 6, start_method="fork"), 4))
    PPO("CnnPolicy", env, n_steps=32, batch_size=32, n_epochs=1, device="cpu").learn(10_000)
"""


@pytest.mark.slow
@pytest.mark.torch
def test_episodes_may_end_in_workers_that_were_not_started(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Frame stacks and transposed images change `terminal_observation` in place."""
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    assert main(["plan", str(script), "--format", "json", "-q"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["knobs"]["n_envs"] == 6
    scratch = next(row for row in answer["components"] if row["name"] == "update.scratch")
    assert scratch["evidence"]["kind"] == "probed"
