"""Train a model while a second one, trained before, is kept as its reference."""

import argparse

import envs
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.env_util import make_vec_env


def parse_args() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--second", choices=["ppo", "dqn"], default="ppo")
    parser.add_argument("--env", default="vector:32")
    parser.add_argument("--net-arch", type=int, nargs="+", default=[512, 512])
    parser.add_argument("--timesteps", type=int, default=10_000)
    return parser.parse_args()


def main() -> None:
    """Train the reference, then the model."""
    args = parse_args()
    env = make_vec_env(envs.make, n_envs=4, seed=12, env_kwargs={"spec": args.env})
    reference = A2C("MlpPolicy", env, policy_kwargs={"net_arch": args.net_arch}, seed=12)
    reference.learn(total_timesteps=2000)
    if args.second == "ppo":
        model = PPO(
            "MlpPolicy",
            env,
            n_steps=512,
            batch_size=512,
            n_epochs=4,
            policy_kwargs={"net_arch": args.net_arch},
            verbose=1,
        )
    else:
        model = DQN(
            "MlpPolicy",
            env,
            buffer_size=100_000,
            batch_size=128,
            learning_starts=1000,
            policy_kwargs={"net_arch": args.net_arch},
            verbose=1,
        )
    model.learn(total_timesteps=args.timesteps)
    observation = env.reset()
    print("reference:", reference.predict(observation)[0], "model:", model.predict(observation)[0])


if __name__ == "__main__":
    main()
