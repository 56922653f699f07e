"""Train with hindsight experience replay on a goal environment."""

import argparse

import envs
from sb3_contrib import TQC
from stable_baselines3 import DDPG, SAC, HerReplayBuffer
from stable_baselines3.common.env_util import make_vec_env

ALGORITHMS = {"sac": SAC, "ddpg": DDPG, "tqc": TQC}


def parse_args() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--algo", choices=sorted(ALGORITHMS), default="sac")
    parser.add_argument("--env", default="goal:10,actions=box4,length=50")
    parser.add_argument("--n-envs", type=int, default=1)
    parser.add_argument("--buffer-size", type=int, default=100_000)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--sampled-goals", type=int, default=4)
    parser.add_argument("--timesteps", type=int, default=2500)
    return parser.parse_args()


def main() -> None:
    """Build the environment and the model, and train it."""
    args = parse_args()
    env = make_vec_env(envs.make, n_envs=args.n_envs, seed=10, env_kwargs={"spec": args.env})
    model = ALGORITHMS[args.algo](
        "MultiInputPolicy",
        env,
        replay_buffer_class=HerReplayBuffer,
        replay_buffer_kwargs={
            "n_sampled_goal": args.sampled_goals,
            "goal_selection_strategy": "future",
        },
        buffer_size=args.buffer_size,
        batch_size=args.batch_size,
        learning_starts=1000,
        verbose=1,
    )
    model.learn(total_timesteps=args.timesteps)


if __name__ == "__main__":
    main()
