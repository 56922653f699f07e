"""Train with a feature extractor of one's own."""

import argparse

import envs
import torch as th
from gymnasium import spaces
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn


class ResidualBlock(nn.Module):
    """Two convolutions beside an identity."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, images: th.Tensor) -> th.Tensor:
        """Add the convolved images to the images."""
        return th.relu(images + self.second(th.relu(self.first(images))))


class ResidualExtractor(BaseFeaturesExtractor):
    """A small residual network for images."""

    def __init__(self, observation_space: spaces.Box, features_dim: int = 256) -> None:
        super().__init__(observation_space, features_dim)
        self.convolutions = nn.Sequential(
            nn.Conv2d(observation_space.shape[0], 16, 5, stride=3),
            nn.ReLU(),
            ResidualBlock(16),
            nn.MaxPool2d(2),
            ResidualBlock(16),
            nn.Flatten(),
        )
        with th.no_grad():
            size = self.convolutions(th.zeros(1, *observation_space.shape)).shape[1]
        self.head = nn.Sequential(nn.Linear(size, features_dim), nn.ReLU())

    def forward(self, observations: th.Tensor) -> th.Tensor:
        """Turn images into features."""
        return self.head(self.convolutions(observations))


class AttentionExtractor(BaseFeaturesExtractor):
    """Self-attention over the entries of a vector, taken as tokens."""

    def __init__(self, observation_space: spaces.Box, features_dim: int = 64) -> None:
        super().__init__(observation_space, features_dim)
        self.embed = nn.Linear(1, features_dim)
        layer = nn.TransformerEncoderLayer(
            features_dim, nhead=4, dim_feedforward=2 * features_dim, dropout=0.0, batch_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, num_layers=2)

    def forward(self, observations: th.Tensor) -> th.Tensor:
        """Turn vectors into features."""
        return self.encoder(self.embed(observations.unsqueeze(-1))).mean(dim=1)


EXTRACTORS = {"residual": ResidualExtractor, "attention": AttentionExtractor}


def parse_args() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--algo", choices=["ppo", "sac"], default="ppo")
    parser.add_argument("--extractor", choices=sorted(EXTRACTORS), default="residual")
    parser.add_argument("--env", default="image:64x64x3")
    parser.add_argument("--policy", default="CnnPolicy")
    parser.add_argument("--n-envs", type=int, default=4)
    parser.add_argument("--n-steps", type=int, default=128)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--timesteps", type=int, default=2048)
    return parser.parse_args()


def main() -> None:
    """Build the environments and the model, and train it."""
    args = parse_args()
    env = make_vec_env(envs.make, n_envs=args.n_envs, seed=9, env_kwargs={"spec": args.env})
    policy_kwargs = {
        "features_extractor_class": EXTRACTORS[args.extractor],
        "features_extractor_kwargs": {"features_dim": 128},
    }
    if args.algo == "ppo":
        model = PPO(
            args.policy,
            env,
            n_steps=args.n_steps,
            batch_size=args.batch_size,
            n_epochs=2,
            policy_kwargs=policy_kwargs,
            verbose=1,
        )
    else:
        model = SAC(
            args.policy,
            env,
            buffer_size=50_000,
            batch_size=args.batch_size,
            learning_starts=500,
            policy_kwargs=policy_kwargs,
            verbose=1,
        )
    model.learn(total_timesteps=args.timesteps)


if __name__ == "__main__":
    main()
