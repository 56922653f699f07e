"""Train PPO on vector, image or dictionary observations."""

import argparse

import envs
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env


def parse_args() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env", default="CartPole-v1")
    parser.add_argument("--policy", default="MlpPolicy")
    parser.add_argument("--n-envs", type=int, default=1)
    parser.add_argument("--n-steps", type=int, default=2048)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--n-epochs", type=int, default=10)
    parser.add_argument("--net-arch", type=int, nargs="+", default=[64, 64])
    parser.add_argument("--use-sde", action="store_true")
    parser.add_argument("--timesteps", type=int, default=10_000)
    return parser.parse_args()


def main() -> None:
    """Build the environments and the model, and train it."""
    args = parse_args()
    env = make_vec_env(envs.make, n_envs=args.n_envs, seed=0, env_kwargs={"spec": args.env})
    model = PPO(
        args.policy,
        env,
        n_steps=args.n_steps,
        batch_size=args.batch_size,
        n_epochs=args.n_epochs,
        use_sde=args.use_sde,
        policy_kwargs={"net_arch": args.net_arch},
        seed=0,
        verbose=1,
    )
    model.learn(total_timesteps=args.timesteps)
    env.close()


if __name__ == "__main__":
    main()
