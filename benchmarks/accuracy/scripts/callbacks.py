"""Train with evaluation and checkpoints, which are written into a temporary folder."""

import argparse
import tempfile

import envs
from stable_baselines3 import DQN, PPO, SAC
from stable_baselines3.common.callbacks import CallbackList, CheckpointCallback, EvalCallback
from stable_baselines3.common.env_util import make_vec_env


def parse_args() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--algo", choices=["ppo", "dqn", "sac"], default="ppo")
    parser.add_argument("--env", default="CartPole-v1")
    parser.add_argument("--policy", default="MlpPolicy")
    parser.add_argument("--n-envs", type=int, default=2)
    parser.add_argument("--eval-freq", type=int, default=0)
    parser.add_argument("--eval-envs", type=int, default=1)
    parser.add_argument("--save-freq", type=int, default=0)
    parser.add_argument("--save-replay-buffer", action="store_true")
    parser.add_argument("--buffer-size", type=int, default=20_000)
    parser.add_argument("--learning-starts", type=int, default=1000)
    parser.add_argument("--timesteps", type=int, default=10_000)
    return parser.parse_args()


def main() -> None:
    """Build everything, train, and leave nothing behind."""
    args = parse_args()
    env = make_vec_env(envs.make, n_envs=args.n_envs, seed=8, env_kwargs={"spec": args.env})
    if args.algo == "ppo":
        model = PPO(args.policy, env, n_steps=512, batch_size=128, n_epochs=4, verbose=1)
    else:
        algorithm = {"dqn": DQN, "sac": SAC}[args.algo]
        model = algorithm(
            args.policy,
            env,
            buffer_size=args.buffer_size,
            learning_starts=args.learning_starts,
            batch_size=64,
            train_freq=4,
            verbose=1,
        )
    with tempfile.TemporaryDirectory() as folder:
        callbacks = []
        if args.eval_freq:
            eval_env = make_vec_env(envs.make, n_envs=args.eval_envs, env_kwargs={"spec": args.env})
            callbacks.append(
                EvalCallback(
                    eval_env,
                    eval_freq=args.eval_freq,
                    n_eval_episodes=5,
                    best_model_save_path=folder,
                    log_path=folder,
                )
            )
        if args.save_freq:
            callbacks.append(
                CheckpointCallback(
                    save_freq=args.save_freq,
                    save_path=folder,
                    save_replay_buffer=args.save_replay_buffer,
                )
            )
        model.learn(total_timesteps=args.timesteps, callback=CallbackList(callbacks))


if __name__ == "__main__":
    main()
