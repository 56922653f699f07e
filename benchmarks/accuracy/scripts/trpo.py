"""Train TRPO."""

import argparse

import envs
from sb3_contrib import TRPO
from stable_baselines3.common.env_util import make_vec_env


def parse_args() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env", default="Pendulum-v1")
    parser.add_argument("--policy", default="MlpPolicy")
    parser.add_argument("--n-envs", type=int, default=2)
    parser.add_argument("--n-steps", type=int, default=1024)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--sub-sampling", type=int, default=1)
    parser.add_argument("--timesteps", type=int, default=8192)
    return parser.parse_args()


def main() -> None:
    """Build the environments and the model, and train it."""
    args = parse_args()
    env = make_vec_env(envs.make, n_envs=args.n_envs, seed=6, env_kwargs={"spec": args.env})
    model = TRPO(
        args.policy,
        env,
        n_steps=args.n_steps,
        batch_size=args.batch_size,
        sub_sampling_factor=args.sub_sampling,
        seed=6,
        verbose=1,
    )
    model.learn(args.timesteps)


if __name__ == "__main__":
    main()
