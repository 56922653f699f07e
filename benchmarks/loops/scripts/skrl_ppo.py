"""skrl: PPO on wide observations, its memory sized by constants in capitals."""

from typing import Any

import gymnasium as gym
import numpy as np
import torch
from skrl.agents.torch.ppo import PPO, PPO_CFG
from skrl.envs.wrappers.torch import wrap_env
from skrl.memories.torch import RandomMemory
from skrl.models.torch import DeterministicMixin, GaussianMixin, Model
from skrl.trainers.torch import SequentialTrainer
from torch import nn

NUM_ENVS = 24
ROLLOUTS = 64
MINI_BATCHES = 4
UPDATES = 5
FIELD = 6000


class Field(gym.Env[Any, Any]):
    """A field of heat that two heaters are to keep level."""

    def __init__(self) -> None:
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (FIELD,), np.float32)
        self.action_space = gym.spaces.Box(-1, 1, (2,), np.float32)
        self.heat = np.zeros(FIELD, np.float32)
        self.time = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.heat[:] = self.np_random.random(FIELD, dtype=np.float32)
        self.time = 0
        return self.heat.copy(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.heat[: FIELD // 2] += 0.1 * action[0]
        self.heat[FIELD // 2 :] += 0.1 * action[1]
        self.time += 1
        return self.heat.copy(), -float(self.heat.std()), False, self.time >= 100, {}


class Policy(GaussianMixin, Model):
    """What to heat."""

    def __init__(self, **spaces: Any) -> None:
        Model.__init__(self, **spaces)
        GaussianMixin.__init__(self)
        self.net = nn.Sequential(nn.Linear(FIELD, 128), nn.ELU(), nn.Linear(128, 2))
        self.log_std = nn.Parameter(torch.zeros(2))

    def compute(self, inputs: dict[str, Any], role: str) -> tuple[torch.Tensor, dict[str, Any]]:
        """Mean and deviation."""
        return self.net(inputs["observations"]), {"log_std": self.log_std}


class Value(DeterministicMixin, Model):
    """What a field is worth."""

    def __init__(self, **spaces: Any) -> None:
        Model.__init__(self, **spaces)
        DeterministicMixin.__init__(self)
        self.net = nn.Sequential(nn.Linear(FIELD, 128), nn.ELU(), nn.Linear(128, 1))

    def compute(self, inputs: dict[str, Any], role: str) -> tuple[torch.Tensor, dict[str, Any]]:
        """The value."""
        return self.net(inputs["observations"]), {}


env = wrap_env(gym.vector.SyncVectorEnv([Field for _ in range(NUM_ENVS)]))
spaces = {"observation_space": env.observation_space, "action_space": env.action_space}
agent = PPO(
    models={"policy": Policy(**spaces, device="cpu"), "value": Value(**spaces, device="cpu")},
    memory=RandomMemory(memory_size=ROLLOUTS, num_envs=NUM_ENVS, device="cpu"),
    cfg=PPO_CFG(rollouts=ROLLOUTS, learning_epochs=2, mini_batches=MINI_BATCHES),
    **spaces,
    device="cpu",
)
timesteps = UPDATES * ROLLOUTS
SequentialTrainer(env=env, agents=agent, cfg={"timesteps": timesteps, "headless": True}).train()
