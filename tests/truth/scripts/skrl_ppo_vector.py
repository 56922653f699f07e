"""skrl: PPO with scaled observations over a vector of envs, checkpoints as it makes them itself."""

from typing import Any

import gymnasium
import torch
from skrl.agents.torch.ppo import PPO, PPO_CFG
from skrl.envs.wrappers.torch import wrap_env
from skrl.memories.torch import RandomMemory
from skrl.models.torch import DeterministicMixin, GaussianMixin, Model
from skrl.resources.preprocessors.torch import RunningStandardScaler
from skrl.trainers.torch import SequentialTrainer

HIDDEN = 512


def layers(inputs: int, outputs: int) -> torch.nn.Sequential:
    return torch.nn.Sequential(
        torch.nn.Linear(inputs, HIDDEN),
        torch.nn.ELU(),
        torch.nn.Linear(HIDDEN, HIDDEN),
        torch.nn.ELU(),
        torch.nn.Linear(HIDDEN, outputs),
    )


class Policy(GaussianMixin, Model):
    def __init__(self, **spaces: Any) -> None:
        Model.__init__(self, **spaces)
        GaussianMixin.__init__(self)
        self.net = layers(self.num_observations, self.num_actions)
        self.log_std = torch.nn.Parameter(torch.zeros(self.num_actions))

    def compute(self, inputs: dict[str, Any], role: str) -> tuple[torch.Tensor, dict[str, Any]]:
        return self.net(inputs["observations"]), {"log_std": self.log_std}


class Value(DeterministicMixin, Model):
    def __init__(self, **spaces: Any) -> None:
        Model.__init__(self, **spaces)
        DeterministicMixin.__init__(self)
        self.net = layers(self.num_observations, 1)

    def compute(self, inputs: dict[str, Any], role: str) -> tuple[torch.Tensor, dict[str, Any]]:
        return self.net(inputs["observations"]), {}


steps, count = 128, 16
env = wrap_env(gymnasium.make_vec("Pendulum-v1", num_envs=count, vectorization_mode="sync"))
spaces = {"observation_space": env.observation_space, "action_space": env.action_space}
models = {"policy": Policy(**spaces, device="cpu"), "value": Value(**spaces, device="cpu")}
cfg = PPO_CFG(
    rollouts=steps,
    learning_epochs=2,
    mini_batches=2,
    observation_preprocessor=RunningStandardScaler,
    observation_preprocessor_kwargs={"size": env.observation_space, "device": "cpu"},
)
agent = PPO(
    models=models,
    memory=RandomMemory(memory_size=steps, num_envs=count, device="cpu"),
    cfg=cfg,
    **spaces,
    device="cpu",
)
trainer = SequentialTrainer(env=env, agents=agent, cfg={"timesteps": 3 * steps, "headless": True})
trainer.train()
