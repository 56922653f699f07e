"""rsl_rl: PPO with recurrent networks, whose trajectories are padded for the update."""

from typing import Any

import torch
from rsl_rl.runners import OnPolicyRunner
from tensordict import TensorDict

NUM_ENVS = 512
NUM_STEPS_PER_ENV = 32
NUM_OBS = 96
RNN_HIDDEN_DIM = 128
ITERATIONS = 4


class Walkers:
    """Walkers that fall at random, so that trajectories have many lengths."""

    def __init__(self) -> None:
        self.num_envs, self.num_actions, self.max_episode_length = NUM_ENVS, 8, 200
        self.device = "cpu"
        self.cfg: dict[str, Any] = {}
        self.episode_length_buf = torch.zeros(NUM_ENVS, dtype=torch.long)
        self.state = torch.zeros(NUM_ENVS, NUM_OBS)

    def get_observations(self) -> Any:
        """What is sensed, and what only the critic may know."""
        privileged = torch.cat([self.state, self.state.square()], 1)
        values = {"policy": self.state.clone(), "privileged": privileged}
        return TensorDict(values, batch_size=[NUM_ENVS])

    def step(self, actions: torch.Tensor) -> tuple[Any, torch.Tensor, torch.Tensor, Any]:
        """One step of all."""
        self.state = 0.9 * self.state + 0.01 * torch.randn_like(self.state)
        self.state[:, :8] += 0.1 * actions
        self.episode_length_buf += 1
        out = self.episode_length_buf >= self.max_episode_length
        done = out | (torch.rand(NUM_ENVS) < 0.02)
        self.state[done] = 0
        self.episode_length_buf[done] = 0
        return self.get_observations(), self.state[:, 0], done, {"time_outs": out}


CFG: dict[str, Any] = {
    "num_steps_per_env": NUM_STEPS_PER_ENV,
    "save_interval": 50,
    "obs_groups": {"actor": ["policy"], "critic": ["policy", "privileged"]},
    "actor": {
        "class_name": "RNNModel",
        "hidden_dims": [128],
        "rnn_type": "gru",
        "rnn_hidden_dim": RNN_HIDDEN_DIM,
        "distribution_cfg": {"class_name": "GaussianDistribution", "init_std": 1.0},
    },
    "critic": {
        "class_name": "RNNModel",
        "hidden_dims": [128],
        "rnn_type": "gru",
        "rnn_hidden_dim": RNN_HIDDEN_DIM,
    },
    "algorithm": {"class_name": "PPO", "num_learning_epochs": 1, "num_mini_batches": 4},
    "multi_gpu": None,
}

if __name__ == "__main__":
    OnPolicyRunner(Walkers(), CFG).learn(ITERATIONS)
