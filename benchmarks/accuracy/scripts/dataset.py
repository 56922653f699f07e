"""Train beside a data set of one's own, kept in memory for the whole run."""

import argparse

import envs
import numpy as np
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.env_util import make_vec_env


def parse_args() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--algo", choices=["ppo", "sac"], default="ppo")
    parser.add_argument("--env", default="vector:24,actions=box4")
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--timesteps", type=int, default=10_000)
    return parser.parse_args()


def load_dataset(megabytes: int) -> np.ndarray:
    """Make demonstrations up: rows of 250 single-precision numbers."""
    rows = megabytes * 1_000_000 // 1000
    return np.random.default_rng(0).random((rows, 250), dtype=np.float32)


def main() -> None:
    """Load the data, train, and compare with the data at the end."""
    args = parse_args()
    dataset = load_dataset(args.megabytes)
    env = make_vec_env(envs.make, n_envs=2, seed=11, env_kwargs={"spec": args.env})
    if args.algo == "ppo":
        model = PPO("MlpPolicy", env, n_steps=1024, batch_size=128, n_epochs=5, verbose=1)
    else:
        model = SAC("MlpPolicy", env, buffer_size=100_000, learning_starts=500, verbose=1)
    model.learn(total_timesteps=args.timesteps)
    print("mean of the data:", float(dataset[::100].mean()))


if __name__ == "__main__":
    main()
