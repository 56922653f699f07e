"""A2C with three worker processes, made without a helper."""

from stable_baselines3 import A2C
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import SubprocVecEnv
from worlds import Readings


def make(rank: int):
    def init():
        env = Monitor(Readings(300))
        env.reset(seed=rank)
        return env

    return init


if __name__ == "__main__":
    venv = SubprocVecEnv([make(rank) for rank in range(3)])
    model = A2C("MlpPolicy", venv, n_steps=32, seed=0)
    model.learn(10_000)
    venv.close()
