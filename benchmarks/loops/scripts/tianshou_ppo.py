"""Tianshou 2: PPO on wide observations; the update samples the whole buffer as a copy."""

import argparse
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from tianshou.algorithm import PPO
from tianshou.algorithm.modelfree.reinforce import ProbabilisticActorPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OnPolicyTrainerParams
from tianshou.utils.net.common import Net
from tianshou.utils.net.discrete import DiscreteActor, DiscreteCritic

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--training-num", type=int, default=10)
parser.add_argument("--collect-steps", type=int, default=1_000)
parser.add_argument("--batch-size", type=int, default=250)
parser.add_argument("--width", type=int, default=5_000)
parser.add_argument("--epochs", type=int, default=3)


class Ledger(gym.Env[Any, Any]):
    """A long book of accounts."""

    def __init__(self, width: int) -> None:
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (width,), np.float32)
        self.action_space = gym.spaces.Discrete(3)
        self.book = np.zeros(width, np.float32)
        self.time = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.book[:] = self.np_random.random(len(self.book), dtype=np.float32)
        self.time = 0
        return self.book.copy(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.book *= 0.98 + 0.02 * int(action)
        self.time += 1
        return self.book.copy(), float(self.book[0]), False, self.time >= 50, {}


if __name__ == "__main__":
    args = parser.parse_args()
    env = Ledger(args.width)
    envs = DummyVectorEnv([lambda: Ledger(args.width) for _ in range(args.training_num)])
    net = Net(state_shape=env.observation_space.shape, hidden_sizes=[128])
    actor = DiscreteActor(preprocess_net=net, action_shape=3, softmax_output=False)
    critic = DiscreteCritic(preprocess_net=net)
    policy = ProbabilisticActorPolicy(
        actor=actor,
        dist_fn=lambda logits: torch.distributions.Categorical(logits=logits),
        action_space=env.action_space,
        action_scaling=False,
        action_bound_method=None,
    )
    algorithm = PPO(policy=policy, critic=critic, optim=AdamOptimizerFactory(lr=3e-4))
    collector = Collector(algorithm, envs, VectorReplayBuffer(args.collect_steps, len(envs)))
    result = algorithm.run_training(
        OnPolicyTrainerParams(
            training_collector=collector,
            max_epochs=args.epochs,
            epoch_num_steps=args.collect_steps,
            collection_step_num_env_steps=args.collect_steps,
            update_step_num_repetitions=2,
            batch_size=args.batch_size,
            show_progress=False,
        )
    )
    print(result)
