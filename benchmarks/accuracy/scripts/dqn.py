"""Train DQN or QR-DQN from a replay buffer."""

import argparse

import envs
from sb3_contrib import QRDQN
from stable_baselines3 import DQN
from stable_baselines3.common.env_util import make_vec_env


def parse_args() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--algo", choices=["dqn", "qrdqn"], default="dqn")
    parser.add_argument("--env", default="CartPole-v1")
    parser.add_argument("--policy", default="MlpPolicy")
    parser.add_argument("--n-envs", type=int, default=1)
    parser.add_argument("--buffer-size", type=int, default=100_000)
    parser.add_argument("--learning-starts", type=int, default=1000)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--train-freq", type=int, default=4)
    parser.add_argument("--gradient-steps", type=int, default=1)
    parser.add_argument("--n-step-returns", type=int, default=1)
    parser.add_argument("--net-arch", type=int, nargs="+", default=[64, 64])
    parser.add_argument("--save-memory", action="store_true")
    parser.add_argument("--timesteps", type=int, default=10_000)
    return parser.parse_args()


def main() -> None:
    """Build the environment and the model, and train it."""
    args = parse_args()
    env = make_vec_env(envs.make, n_envs=args.n_envs, seed=2, env_kwargs={"spec": args.env})
    buffer_kwargs = {"handle_timeout_termination": False} if args.save_memory else None
    algorithm = {"dqn": DQN, "qrdqn": QRDQN}[args.algo]
    model = algorithm(
        args.policy,
        env,
        buffer_size=args.buffer_size,
        learning_starts=args.learning_starts,
        batch_size=args.batch_size,
        train_freq=args.train_freq,
        gradient_steps=args.gradient_steps,
        n_steps=args.n_step_returns,
        optimize_memory_usage=args.save_memory,
        replay_buffer_kwargs=buffer_kwargs,
        target_update_interval=500,
        policy_kwargs={"net_arch": args.net_arch},
        seed=2,
        verbose=1,
    )
    model.learn(total_timesteps=args.timesteps, log_interval=20)


if __name__ == "__main__":
    main()
