"""Tianshou 2: SAC with envs in processes of their own, and a test of the policy each epoch."""

import argparse
from typing import Any

import gymnasium as gym
import numpy as np
from tianshou.algorithm import SAC
from tianshou.algorithm.modelfree.sac import SACPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv, SubprocVectorEnv
from tianshou.trainer import OffPolicyTrainerParams
from tianshou.utils.net.common import Net
from tianshou.utils.net.continuous import ContinuousActorProbabilistic, ContinuousCritic


class Grid(gym.Env[Any, Any]):
    """Loads of a power grid, to be balanced by eight plants."""

    def __init__(self, loads: int) -> None:
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (loads,), np.float32)
        self.action_space = gym.spaces.Box(-1, 1, (8,), np.float32)
        self.loads = np.zeros(loads, np.float32)
        self.steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.loads = self.np_random.normal(size=self.loads.shape).astype(np.float32)
        self.steps = 0
        return self.loads.copy(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.loads *= np.float32(0.98)
        self.loads[:8] += action
        self.steps += 1
        reward = -float(np.abs(self.loads).mean())
        return self.loads.copy(), reward, False, self.steps >= 100, {}


def network(loads: int, hidden: int, *, critic: bool) -> Net:
    """The first layers of an actor or a critic."""
    sizes = [hidden, hidden]
    if critic:
        return Net(state_shape=loads, action_shape=8, hidden_sizes=sizes, concat=True)
    return Net(state_shape=loads, hidden_sizes=sizes)


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num-envs", type=int, default=4)
    parser.add_argument("--loads", type=int, default=1500)
    parser.add_argument("--buffer-size", type=int, default=20_000)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    envs = SubprocVectorEnv([lambda: Grid(args.loads) for _ in range(args.num_envs)])
    test_envs = DummyVectorEnv([lambda: Grid(args.loads) for _ in range(2)])
    actor = ContinuousActorProbabilistic(
        preprocess_net=network(args.loads, args.hidden, critic=False),
        action_shape=8,
        unbounded=True,
        conditioned_sigma=True,
    )
    first, second = (
        ContinuousCritic(preprocess_net=network(args.loads, args.hidden, critic=True))
        for _ in range(2)
    )
    algorithm = SAC(
        policy=SACPolicy(actor=actor, action_space=Grid(args.loads).action_space),
        policy_optim=AdamOptimizerFactory(lr=1e-3),
        critic=first,
        critic_optim=AdamOptimizerFactory(lr=1e-3),
        critic2=second,
        critic2_optim=AdamOptimizerFactory(lr=1e-3),
    )
    buffer = VectorReplayBuffer(args.buffer_size, args.num_envs)
    collector = Collector(algorithm, envs, buffer, exploration_noise=True)
    tester = Collector(algorithm, test_envs)
    collector.reset()
    collector.collect(n_step=1000, random=True)
    algorithm.run_training(
        OffPolicyTrainerParams(
            training_collector=collector,
            test_collector=tester,
            max_epochs=args.epochs,
            epoch_num_steps=400,
            collection_step_num_env_steps=40,
            update_step_num_gradient_steps_per_sample=0.1,
            test_step_num_episodes=2,
            batch_size=args.batch_size,
            show_progress=False,
        )
    )
    envs.close()


if __name__ == "__main__":
    main()
