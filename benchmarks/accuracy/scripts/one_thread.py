"""Train with PyTorch kept on one thread, the environment named by its id."""

import argparse

import torch as th
from stable_baselines3 import PPO


def parse_args() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env", default="Acrobot-v1")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--timesteps", type=int, default=6144)
    return parser.parse_args()


def main() -> None:
    """Build the model and train it."""
    args = parse_args()
    th.set_num_threads(1)
    model = PPO("MlpPolicy", args.env, n_steps=1024, batch_size=args.batch_size, verbose=1)
    model.learn(total_timesteps=args.timesteps)


if __name__ == "__main__":
    main()
