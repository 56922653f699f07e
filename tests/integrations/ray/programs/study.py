"""A study of Tune whose trials demand their plan; prints what became of each, by its n_steps."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

WIDTH = 1 << 18


class Wide(gym.Env[Any, Any]):
    """Observations of 256 KiB, so that the rollout is most of a trial."""

    observation_space = gym.spaces.Box(0, 255, (WIDTH,), np.uint8)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Begin."""
        return np.zeros(WIDTH, np.uint8), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step."""
        return np.ones(WIDTH, np.uint8), 0.0, False, False, {}


class First(BaseFeaturesExtractor):
    """Reads the first few values alone, so that updates are quick."""

    def __init__(self, space: gym.Space[Any]) -> None:
        super().__init__(space, 8)

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """The first."""
        return observations[:, :8].float()


def train(config: dict[str, Any]) -> None:
    """One trial."""
    torch.set_num_threads(1)
    policy = {"features_extractor_class": First}
    n_steps = config["n_steps"]
    model = PPO(
        "MlpPolicy", Wide(), n_steps=n_steps, batch_size=32, n_epochs=1, policy_kwargs=policy
    )
    model.learn(n_steps)
    from ray import tune

    tune.report({"score": 1.0})


def main() -> None:
    """Run the study."""
    import ray
    from ray import tune

    from memfit.integrations.ray import MemoryCallback, planned

    ray.init(address="auto", log_to_driver=False)
    space = {"n_steps": tune.grid_search([128, 1024, 16384])}
    measured = MemoryCallback()
    run = tune.RunConfig(callbacks=[measured], storage_path=sys.argv[1], verbose=0)
    found = tune.Tuner(planned(train, space), param_space=space, run_config=run).fit()
    told = {}
    for result in found:
        assert result.config is not None and result.metrics is not None
        record = measured.records[result.metrics["trial_id"]]
        file = Path(result.path, "memory.json")
        told[result.config["n_steps"]] = {
            **vars(record),
            "error": str(result.error or ""),
            "called": "score" in result.metrics,
            "written": json.loads(file.read_text()) if file.exists() else None,
        }
    sys.stdout.write(f"\n{json.dumps(told)}\n")


if __name__ == "__main__":
    main()
