"""rsl_rl: PPO with a critic that sees more than the actor, settings in a dict, and checkpoints."""

import tempfile
from typing import Any

import torch
from rsl_rl.env import VecEnv
from rsl_rl.runners import OnPolicyRunner
from tensordict import TensorDict

NUM_ENVS = 2048
NUM_STEPS = 8
ITERATIONS = 4
HEIGHTS = 187
PROPRIOCEPTION = 48

network = {"class_name": "MLPModel", "hidden_dims": [128, 64], "activation": "elu"}
cfg: dict[str, Any] = {
    "num_steps_per_env": NUM_STEPS,
    "save_interval": 2,
    "obs_groups": {"actor": ["policy"], "critic": ["policy", "heights"]},
    "actor": {
        **network,
        "obs_normalization": True,
        "distribution_cfg": {"class_name": "GaussianDistribution", "init_std": 1.0},
    },
    "critic": {**network, "obs_normalization": True},
    "algorithm": {"class_name": "PPO", "num_learning_epochs": 2, "num_mini_batches": 4},
    "multi_gpu": None,
    "logger": "tensorboard",
}


class Walkers(VecEnv):
    """Legs on a terrain whose heights only the critic is shown."""

    def __init__(self) -> None:
        self.num_envs, self.num_actions, self.max_episode_length = NUM_ENVS, 12, 300
        self.device, self.cfg = "cpu", {}
        self.episode_length_buf = torch.zeros(NUM_ENVS, dtype=torch.long)
        self.terrain = torch.randn(4096, HEIGHTS)
        self.body = torch.zeros(NUM_ENVS, PROPRIOCEPTION)
        self.places = torch.zeros(NUM_ENVS, dtype=torch.long)

    def get_observations(self) -> TensorDict:
        seen = {"policy": self.body.clone(), "heights": self.terrain[self.places]}
        return TensorDict(seen, batch_size=[self.num_envs])

    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, Any]:
        self.body = 0.95 * self.body
        self.body[:, :12] += 0.1 * actions.clamp(-1, 1)
        self.places = (self.places + 1) % len(self.terrain)
        self.episode_length_buf += 1
        over = self.episode_length_buf >= self.max_episode_length
        self.episode_length_buf[over] = 0
        reward = -self.body.square().mean(1)
        return self.get_observations(), reward, over, {"time_outs": over}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        runner = OnPolicyRunner(Walkers(), cfg, log_dir=folder)
        runner.learn(ITERATIONS, init_at_random_ep_len=True)
