"""What the study of the benchmark tries: PPO on an env that waits for its simulator."""

from __future__ import annotations

import time
from typing import Any

import gymnasium
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

FLOATS = 2**18  # one observation takes 1 MiB
SEEN = 16  # of them by the networks: what is measured is memory, not arithmetic
WAIT_SECONDS = 0.004  # a step of the simulator, which runs elsewhere


class Simulator(gymnasium.Env[Any, Any]):
    """Large observations, and next to no arithmetic."""

    observation_space = gymnasium.spaces.Box(-1, 1, (FLOATS,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self) -> None:
        self.state = np.full(FLOATS, 0.5, np.float32)
        self.steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Begin anew."""
        self.steps = 0
        return self.state, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Wait for the simulator."""
        time.sleep(WAIT_SECONDS)
        self.steps += 1
        return self.state, 1.0, self.steps % 50 == 0, False, {}


class First(BaseFeaturesExtractor):
    """The first few numbers of an observation."""

    def __init__(self, space: gymnasium.spaces.Box) -> None:
        super().__init__(space, SEEN)

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """What the networks see."""
        return observations[:, :SEEN]


def objective(trial: Any) -> float:
    """Two rollouts, each learned once."""
    return _learned(
        trial.suggest_int("n_steps", 64, 6080, step=32),
        trial.suggest_categorical("batch_size", [16, 32, 64]),
        trial.suggest_float("learning_rate", 1e-5, 1e-3, log=True),
    )


def train(config: dict[str, Any]) -> None:
    """The same as a function of Tune."""
    loss = _learned(config["n_steps"], config["batch_size"], config["learning_rate"])
    from ray import tune

    tune.report({"loss": loss})


def _learned(n_steps: int, batch_size: int, rate: float) -> float:
    torch.set_num_threads(1)
    model = PPO(
        "MlpPolicy",
        Simulator(),
        n_steps=n_steps,
        batch_size=batch_size,
        learning_rate=rate,
        n_epochs=1,
        policy_kwargs={"features_extractor_class": First},
    )
    model.learn(n_steps)
    return float(model.logger.name_to_value.get("train/loss", 0.0))
