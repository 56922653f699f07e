"""Sixty-four workers; each calls its process by a name that can be seen from outside."""

import ctypes
import sys

from frames import Frames
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import SubprocVecEnv

NAME = b"truth-worker"


class Named(Frames):
    def __init__(self) -> None:
        super().__init__(side=36)
        ctypes.CDLL(None).prctl(15, NAME, 0, 0, 0)


if __name__ == "__main__":
    env = SubprocVecEnv([Named] * 64, start_method=sys.argv[1])
    PPO("CnnPolicy", env, n_steps=32, batch_size=64, device="cpu").learn(100_000)
