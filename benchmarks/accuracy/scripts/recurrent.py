"""Train a recurrent policy with RecurrentPPO."""

import argparse

import envs
from sb3_contrib import RecurrentPPO
from stable_baselines3.common.env_util import make_vec_env


def parse_args() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env", default="CartPole-v1")
    parser.add_argument("--policy", default="MlpLstmPolicy")
    parser.add_argument("--n-envs", type=int, default=4)
    parser.add_argument("--n-steps", type=int, default=128)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--n-epochs", type=int, default=4)
    parser.add_argument("--lstm-size", type=int, default=256)
    parser.add_argument("--timesteps", type=int, default=2048)
    return parser.parse_args()


def main() -> None:
    """Build the environments and the model, and train it."""
    args = parse_args()
    env = make_vec_env(envs.make, n_envs=args.n_envs, seed=4, env_kwargs={"spec": args.env})
    model = RecurrentPPO(
        args.policy,
        env,
        n_steps=args.n_steps,
        batch_size=args.batch_size,
        n_epochs=args.n_epochs,
        policy_kwargs={"lstm_hidden_size": args.lstm_size},
        seed=4,
        verbose=1,
    )
    model.learn(args.timesteps)


if __name__ == "__main__":
    main()
