"""TRPO on long vectors of four envs."""

from sb3_contrib import TRPO
from stable_baselines3.common.env_util import make_vec_env
from worlds import Readings


def main() -> None:
    envs = make_vec_env(Readings, n_envs=4, env_kwargs={"numbers": 6000})
    TRPO("MlpPolicy", envs, n_steps=512, batch_size=256, n_critic_updates=2, seed=11).learn(40_000)


if __name__ == "__main__":
    main()
