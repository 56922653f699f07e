"""Catch: a small real training, for a first look. `python -m memfit.systems.catch`.

A ball falls, a paddle moves; the observation is the screen as four grey frames. PPO with a CNN
learns it in a few minutes on a laptop.
"""

from __future__ import annotations

import argparse
from typing import Any

import gymnasium as gym
import numpy as np

SIZE = 64
PADDLE = 12
STEP = 3


class Catch(gym.Env[np.ndarray, np.int64]):
    """A ball to be caught: reward 1 where the paddle is under it when it lands, else -1."""

    def __init__(self) -> None:
        self.observation_space = gym.spaces.Box(0, 255, (SIZE, SIZE, 1), np.uint8)
        self.action_space = gym.spaces.Discrete(3)
        self._ball = np.zeros(2, dtype=np.int64)
        self._paddle = SIZE // 2

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self._ball[:] = 0, self.np_random.integers(2, SIZE - 2)
        self._paddle = int(self.np_random.integers(PADDLE, SIZE - PADDLE))
        return self._screen(), {}

    def step(self, action: np.int64) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self._paddle = int(np.clip(self._paddle + (int(action) - 1) * STEP, 0, SIZE - 1))
        self._ball[0] += STEP
        landed = bool(self._ball[0] >= SIZE - 2)
        caught = abs(int(self._ball[1]) - self._paddle) <= PADDLE // 2
        reward = (1.0 if caught else -1.0) if landed else 0.0
        return self._screen(), reward, landed, False, {}

    def _screen(self) -> np.ndarray:
        screen = np.zeros((SIZE, SIZE, 1), np.uint8)
        row, column = min(int(self._ball[0]), SIZE - 2), int(self._ball[1])
        screen[row : row + 2, max(0, column - 1) : column + 2] = 255
        left = max(0, self._paddle - PADDLE // 2)
        screen[SIZE - 2 :, left : left + PADDLE] = 128
        return screen


def main() -> None:
    """Train PPO on Catch."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecFrameStack

    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--n-envs", type=int, default=8)
    parser.add_argument("--n-steps", type=int, default=256)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--timesteps", type=int, default=200_000)
    parser.add_argument("--fit", action="store_true", help="the same training in less memory")
    parser.add_argument("--recorded", action="store_true", help="tell `memfit run` who holds what")
    parser.add_argument("--quiet", action="store_true")
    options = parser.parse_args()

    env = VecFrameStack(make_vec_env(Catch, n_envs=options.n_envs, seed=0), n_stack=4)
    kind, parts = fitting() if options.fit else (PPO, {})
    model = kind(
        "CnnPolicy",
        env,
        n_steps=options.n_steps,
        batch_size=options.batch_size,
        n_epochs=2,
        verbose=0 if options.quiet else 1,
        device="cpu",
        seed=0,
        **parts,
    )
    if options.recorded:
        from memfit.tracking.sb3 import MemoryCallback

        model.learn(options.timesteps, callback=MemoryCallback())
    else:
        model.learn(options.timesteps)


def fitting() -> tuple[Any, dict[str, Any]]:
    """What `--fit` changes: each frame is kept once, and a minibatch goes through in pieces."""
    from memfit.dropins import MicroBatchPPO, WindowRolloutBuffer

    return MicroBatchPPO, {"rollout_buffer_class": WindowRolloutBuffer, "micro_batch_size": 64}


if __name__ == "__main__":
    main()
