"""Train an off-policy algorithm for continuous actions: SAC, TD3, DDPG, TQC or CrossQ."""

import argparse

import envs
import numpy as np
from sb3_contrib import TQC, CrossQ
from stable_baselines3 import DDPG, SAC, TD3
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.noise import NormalActionNoise

ALGORITHMS = {"sac": SAC, "td3": TD3, "ddpg": DDPG, "tqc": TQC, "crossq": CrossQ}


def parse_args() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--algo", choices=sorted(ALGORITHMS), default="sac")
    parser.add_argument("--env", default="Pendulum-v1")
    parser.add_argument("--policy", default="MlpPolicy")
    parser.add_argument("--n-envs", type=int, default=1)
    parser.add_argument("--buffer-size", type=int, default=1_000_000)
    parser.add_argument("--learning-starts", type=int, default=500)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--train-freq", type=int, default=1)
    parser.add_argument("--gradient-steps", type=int, default=1)
    parser.add_argument("--n-step-returns", type=int, default=1)
    parser.add_argument("--net-arch", type=int, nargs="+", default=[256, 256])
    parser.add_argument("--use-sde", action="store_true")
    parser.add_argument("--save-memory", action="store_true")
    parser.add_argument("--timesteps", type=int, default=3000)
    return parser.parse_args()


def main() -> None:
    """Build the environment and the model, and train it."""
    args = parse_args()
    env = make_vec_env(envs.make, n_envs=args.n_envs, seed=3, env_kwargs={"spec": args.env})
    settings = {
        "buffer_size": args.buffer_size,
        "learning_starts": args.learning_starts,
        "batch_size": args.batch_size,
        "train_freq": args.train_freq,
        "gradient_steps": args.gradient_steps,
        "n_steps": args.n_step_returns,
        "policy_kwargs": {"net_arch": args.net_arch},
    }
    if args.algo in ("td3", "ddpg"):
        size = env.action_space.shape
        settings["action_noise"] = NormalActionNoise(np.zeros(size), 0.1 * np.ones(size))
    elif args.use_sde:
        settings["use_sde"] = True
    if args.save_memory:
        settings["optimize_memory_usage"] = True
        settings["replay_buffer_kwargs"] = {"handle_timeout_termination": False}
    model = ALGORITHMS[args.algo](args.policy, env, seed=3, verbose=1, **settings)
    model.learn(total_timesteps=args.timesteps, log_interval=10)


if __name__ == "__main__":
    main()
