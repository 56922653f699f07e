"""A PPO on CartPole for some seconds; prints when each of its small, equal iterations began.

Arguments: seconds, envs, workers (0: none), MiB that the process holds beside.
"""

import json
import sys
import time

from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv


class Times(BaseCallback):
    """Keeps when each iteration began, and ends the training in time."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.until = time.monotonic() + seconds
        self.began: list[float] = []

    def _on_rollout_start(self) -> None:
        self.began.append(time.monotonic())

    def _on_step(self) -> bool:
        return time.monotonic() < self.until


def main() -> None:
    seconds, n_envs, workers, held = (int(word) for word in sys.argv[1:5])
    block = bytearray(b"1") * (held << 20)
    kind = SubprocVecEnv if workers else DummyVecEnv
    env = make_vec_env("CartPole-v1", n_envs=n_envs, seed=0, vec_env_cls=kind)
    model = PPO(
        "MlpPolicy", env, n_steps=32 // n_envs, batch_size=32, n_epochs=4, seed=0, device="cpu"
    )
    times = Times(seconds)
    model.learn(10**9, callback=times)
    print(json.dumps(times.began), len(block) if not held else "", flush=True)


if __name__ == "__main__":
    main()
