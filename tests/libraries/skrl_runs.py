"""Small trainings of skrl, built as a script would build them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import torch
from skrl.agents.torch.dqn import DQN, DQN_CFG
from skrl.agents.torch.ppo import PPO, PPO_CFG
from skrl.envs.wrappers.torch import wrap_env
from skrl.memories.torch import RandomMemory
from skrl.models.torch import CategoricalMixin, DeterministicMixin, Model
from skrl.trainers.torch import SequentialTrainer


class Policy(CategoricalMixin, Model):  # type: ignore[misc]
    def __init__(self, **spaces: Any) -> None:
        Model.__init__(self, **spaces)
        CategoricalMixin.__init__(self)
        self.net = torch.nn.Linear(4, 2)

    def compute(self, inputs: dict[str, Any], role: str) -> Any:
        return self.net(inputs["observations"]), {}


class Values(DeterministicMixin, Model):  # type: ignore[misc]
    def __init__(self, outputs: int, **spaces: Any) -> None:
        Model.__init__(self, **spaces)
        DeterministicMixin.__init__(self)
        self.net = torch.nn.Linear(4, outputs)

    def compute(self, inputs: dict[str, Any], role: str) -> Any:
        return self.net(inputs["observations"]), {}


def _trained(agent: type[Any], models: Any, memory: Any, cfg: Any, env: Any, steps: int) -> Any:
    made = agent(models=models, memory=memory, cfg=cfg, device="cpu", **_spaces(env))
    return SequentialTrainer(env=env, agents=made, cfg=_cfg(steps))


def _cfg(steps: int) -> dict[str, Any]:
    return {"timesteps": steps, "headless": True, "close_environment_at_exit": False}


def _spaces(env: Any) -> dict[str, Any]:
    return {"observation_space": env.observation_space, "action_space": env.action_space}


def ppo(folder: Path, *, memory_size: int = 8, **experiment: Any) -> Any:
    """Two CartPoles, 8 steps each, in two minibatches: a trainer about to train 40 steps."""
    env = wrap_env(gymnasium.make_vec("CartPole-v1", num_envs=2, vectorization_mode="sync"))
    told = {**_spaces(env), "device": "cpu"}
    options = {"directory": str(folder), "write_interval": 0, "checkpoint_interval": 0}
    return _trained(
        PPO,
        {"policy": Policy(**told), "value": Values(1, **told)},
        RandomMemory(memory_size=memory_size, num_envs=2, device="cpu"),
        PPO_CFG(rollouts=8, mini_batches=2, experiment={**options, **experiment}),
        env,
        40,
    )


def dqn(folder: Path) -> Any:
    """One CartPole and a memory of 100 rows: a trainer about to train 40 steps."""
    env = wrap_env(gymnasium.make("CartPole-v1"))
    told = {**_spaces(env), "device": "cpu"}
    options = {"directory": str(folder), "write_interval": 0, "checkpoint_interval": 0}
    return _trained(
        DQN,
        {"q_network": Values(2, **told), "target_q_network": Values(2, **told)},
        RandomMemory(memory_size=100, num_envs=1, device="cpu"),
        DQN_CFG(batch_size=16, learning_starts=10, experiment=options),
        env,
        40,
    )
