"""rsl_rl: PPO over many robots that are stepped at once in torch."""

import argparse
from typing import Any

import torch
from rsl_rl.runners import OnPolicyRunner
from tensordict import TensorDict


class Robots:
    """A row of oscillators, with the attributes that the runner asks of a VecEnv."""

    def __init__(self, num_envs: int, num_obs: int) -> None:
        self.num_envs, self.num_actions, self.max_episode_length = num_envs, 12, 500
        self.device = "cpu"
        self.cfg: dict[str, Any] = {}
        self.episode_length_buf = torch.zeros(num_envs, dtype=torch.long)
        self.state = torch.zeros(num_envs, num_obs)

    def get_observations(self) -> Any:
        """What the robots sense."""
        return TensorDict({"policy": self.state.clone()}, batch_size=[self.num_envs])

    def step(self, actions: torch.Tensor) -> tuple[Any, torch.Tensor, torch.Tensor, Any]:
        """Move all of them."""
        self.state = 0.99 * self.state
        self.state[:, :12] += 0.1 * actions.clamp(-1, 1)
        self.episode_length_buf += 1
        over = self.episode_length_buf >= self.max_episode_length
        self.state[over] = 0
        self.episode_length_buf[over] = 0
        reward = -self.state[:, :12].square().mean(1)
        return self.get_observations(), reward, over, {"time_outs": over}


def train_cfg(num_steps: int, mini_batches: int) -> dict[str, Any]:
    """Settings in the form that rsl_rl reads."""
    network = {"class_name": "MLPModel", "hidden_dims": [256, 128], "activation": "elu"}
    gaussian = {"class_name": "GaussianDistribution", "init_std": 1.0}
    return {
        "num_steps_per_env": num_steps,
        "save_interval": 100,
        "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "actor": {**network, "distribution_cfg": gaussian},
        "critic": dict(network),
        "algorithm": {
            "class_name": "PPO",
            "num_learning_epochs": 2,
            "num_mini_batches": mini_batches,
            "learning_rate": 1e-3,
            "schedule": "adaptive",
        },
        "multi_gpu": None,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num-envs", type=int, default=1024)
    parser.add_argument("--num-steps", type=int, default=24)
    parser.add_argument("--num-obs", type=int, default=480)
    parser.add_argument("--mini-batches", type=int, default=4)
    parser.add_argument("--iterations", type=int, default=5)
    args = parser.parse_args()
    env = Robots(args.num_envs, args.num_obs)
    runner = OnPolicyRunner(env, train_cfg(args.num_steps, args.mini_batches), log_dir=None)
    runner.learn(args.iterations)
