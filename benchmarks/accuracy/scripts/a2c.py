"""Train A2C, with RMSprop as in the paper or with Adam."""

import argparse

import envs
from stable_baselines3 import A2C
from stable_baselines3.common.env_util import make_vec_env


def parse_args() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env", default="CartPole-v1")
    parser.add_argument("--policy", default="MlpPolicy")
    parser.add_argument("--n-envs", type=int, default=8)
    parser.add_argument("--n-steps", type=int, default=5)
    parser.add_argument("--net-arch", type=int, nargs="+", default=[64, 64])
    parser.add_argument("--adam", action="store_true")
    parser.add_argument("--use-sde", action="store_true")
    parser.add_argument("--timesteps", type=int, default=20_000)
    return parser.parse_args()


def main() -> None:
    """Build the environments and the model, and train it."""
    args = parse_args()
    env = make_vec_env(envs.make, n_envs=args.n_envs, seed=1, env_kwargs={"spec": args.env})
    model = A2C(
        args.policy,
        env,
        n_steps=args.n_steps,
        use_rms_prop=not args.adam,
        use_sde=args.use_sde,
        policy_kwargs={"net_arch": args.net_arch},
        seed=1,
    )
    model.learn(total_timesteps=args.timesteps, log_interval=200)
    print("steps done:", model.num_timesteps)


if __name__ == "__main__":
    main()
