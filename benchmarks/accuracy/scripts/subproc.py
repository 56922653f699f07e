"""Train with one process for each environment."""

import argparse

import envs
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import SubprocVecEnv


def parse_args() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--algo", choices=["ppo", "sac"], default="ppo")
    parser.add_argument("--env", default="CartPole-v1")
    parser.add_argument("--policy", default="MlpPolicy")
    parser.add_argument("--n-envs", type=int, default=4)
    parser.add_argument("--start-method", choices=["fork", "forkserver", "spawn"])
    parser.add_argument("--n-steps", type=int, default=512)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--timesteps", type=int, default=8192)
    return parser.parse_args()


def main() -> None:
    """Start the workers, build the model and train it."""
    args = parse_args()
    env = make_vec_env(
        envs.make,
        n_envs=args.n_envs,
        seed=7,
        env_kwargs={"spec": args.env},
        vec_env_cls=SubprocVecEnv,
        vec_env_kwargs={"start_method": args.start_method},
    )
    if args.algo == "ppo":
        model = PPO(
            args.policy,
            env,
            n_steps=args.n_steps,
            batch_size=args.batch_size,
            n_epochs=4,
            verbose=1,
        )
    else:
        model = SAC(
            args.policy,
            env,
            buffer_size=200_000,
            batch_size=args.batch_size,
            learning_starts=1000,
            verbose=1,
        )
    model.learn(total_timesteps=args.timesteps)
    env.close()


if __name__ == "__main__":
    main()
