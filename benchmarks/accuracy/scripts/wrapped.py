"""Train on environments behind vectorised wrappers."""

import argparse

import envs
from stable_baselines3 import DQN, PPO, TD3
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    VecEnv,
    VecFrameStack,
    VecMonitor,
    VecNormalize,
    VecTransposeImage,
)


def parse_args() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--algo", choices=["ppo", "dqn", "td3"], default="ppo")
    parser.add_argument("--env", default="CartPole-v1")
    parser.add_argument("--policy", default="MlpPolicy")
    parser.add_argument("--n-envs", type=int, default=4)
    parser.add_argument("--wrap", nargs="+", default=["monitor"])
    parser.add_argument("--frames", type=int, default=4)
    parser.add_argument("--n-steps", type=int, default=512)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--buffer-size", type=int, default=10_000)
    parser.add_argument("--learning-starts", type=int, default=1000)
    parser.add_argument("--timesteps", type=int, default=8192)
    return parser.parse_args()


def wrap(env: VecEnv, names: list[str], frames: int) -> VecEnv:
    """Put the wrappers that are named around the environments, in that order."""
    for name in names:
        if name == "monitor":
            env = VecMonitor(env, filename="vec_monitor.csv")
        elif name == "stack":
            env = VecFrameStack(env, n_stack=frames)
        elif name == "transpose":
            env = VecTransposeImage(env)
        elif name == "normalize":
            env = VecNormalize(env, clip_obs=10.0)
        else:
            raise SystemExit(f"unknown wrapper: {name}")
    return env


def main() -> None:
    """Build the wrapped environments and the model, and train it."""
    args = parse_args()
    env = wrap(
        DummyVecEnv([lambda: Monitor(envs.make(args.env)) for _ in range(args.n_envs)]),
        args.wrap,
        args.frames,
    )
    if args.algo == "ppo":
        model = PPO(
            args.policy,
            env,
            n_steps=args.n_steps,
            batch_size=args.batch_size,
            n_epochs=2,
            verbose=1,
        )
    else:
        algorithm = {"dqn": DQN, "td3": TD3}[args.algo]
        model = algorithm(
            args.policy,
            env,
            buffer_size=args.buffer_size,
            batch_size=args.batch_size,
            learning_starts=args.learning_starts,
            train_freq=4,
            verbose=1,
        )
    model.learn(total_timesteps=args.timesteps)


if __name__ == "__main__":
    main()
