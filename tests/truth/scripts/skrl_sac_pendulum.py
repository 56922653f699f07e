"""skrl: SAC with a memory that is resident as a whole though little of it is filled."""

from typing import Any

import gymnasium
import torch
from skrl.agents.torch.sac import SAC, SAC_CFG
from skrl.envs.wrappers.torch import wrap_env
from skrl.memories.torch import RandomMemory
from skrl.models.torch import DeterministicMixin, GaussianMixin, Model
from skrl.trainers.torch import SequentialTrainer

HIDDEN = 512


def layers(inputs: int, outputs: int) -> torch.nn.Sequential:
    return torch.nn.Sequential(
        torch.nn.Linear(inputs, HIDDEN),
        torch.nn.ReLU(),
        torch.nn.Linear(HIDDEN, HIDDEN),
        torch.nn.ReLU(),
        torch.nn.Linear(HIDDEN, outputs),
    )


class Actor(GaussianMixin, Model):
    def __init__(self, **spaces: Any) -> None:
        Model.__init__(self, **spaces)
        GaussianMixin.__init__(self)
        self.net = layers(self.num_observations, self.num_actions)
        self.log_std = torch.nn.Parameter(torch.zeros(self.num_actions))

    def compute(self, inputs: dict[str, Any], role: str) -> tuple[torch.Tensor, dict[str, Any]]:
        return torch.tanh(self.net(inputs["observations"])), {"log_std": self.log_std}


class Critic(DeterministicMixin, Model):
    def __init__(self, **spaces: Any) -> None:
        Model.__init__(self, **spaces)
        DeterministicMixin.__init__(self)
        self.net = layers(self.num_observations + self.num_actions, 1)

    def compute(self, inputs: dict[str, Any], role: str) -> tuple[torch.Tensor, dict[str, Any]]:
        return self.net(torch.cat([inputs["observations"], inputs["taken_actions"]], dim=1)), {}


env = wrap_env(gymnasium.make("Pendulum-v1"))
spaces = {"observation_space": env.observation_space, "action_space": env.action_space}
critics = ("critic_1", "critic_2", "target_critic_1", "target_critic_2")
agent = SAC(
    models={
        "policy": Actor(**spaces, device="cpu"),
        **{name: Critic(**spaces, device="cpu") for name in critics},
    },
    memory=RandomMemory(memory_size=2_000_000, num_envs=1, device="cpu"),
    cfg=SAC_CFG(batch_size=1024, learning_starts=100),
    **spaces,
    device="cpu",
)
trainer = SequentialTrainer(env=env, agents=agent, cfg={"timesteps": 400, "headless": True})
trainer.train()
