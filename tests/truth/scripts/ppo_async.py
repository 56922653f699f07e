"""Gymnasium's AsyncVectorEnv as a vector env of stable-baselines3, by a class of the script's."""

import sys
from typing import Any

import gymnasium
import numpy
from gymnasium.vector import AsyncVectorEnv
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env.base_vec_env import VecEnv

TABLE = 24 * 2**20


class Tabled(gymnasium.Env):
    """An env with a table of its own."""

    observation_space = gymnasium.spaces.Box(-1, 1, (4,), numpy.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self) -> None:
        self.table = numpy.ones(TABLE, numpy.uint8)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return numpy.zeros(4, numpy.float32), {}

    def step(self, action: Any) -> Any:
        return numpy.zeros(4, numpy.float32), 0.0, False, False, {}


class Adapted(VecEnv):
    """As stable-baselines3 wants it."""

    def __init__(self, envs: AsyncVectorEnv) -> None:
        self.inner = envs
        super().__init__(envs.num_envs, Tabled.observation_space, Tabled.action_space)

    def reset(self) -> Any:
        return self.inner.reset()[0]

    def step_async(self, actions: Any) -> None:
        self.inner.step_async(actions)

    def step_wait(self) -> Any:
        seen, rewards, ended, _, _ = self.inner.step_wait()
        return seen, rewards.astype(numpy.float32), ended, [{} for _ in ended]

    def close(self) -> None:
        self.inner.close()

    def get_attr(self, name: str, indices: Any = None) -> Any:
        return [None] * self.num_envs

    def set_attr(self, name: str, value: Any, indices: Any = None) -> None:
        raise NotImplementedError

    def env_method(
        self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any
    ) -> Any:
        raise NotImplementedError

    def env_is_wrapped(self, wrapper: Any, indices: Any = None) -> Any:
        return [False] * self.num_envs


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    env = Adapted(AsyncVectorEnv([Tabled] * count))
    PPO("MlpPolicy", env, n_steps=64, batch_size=64, device="cpu").learn(3 * 64 * count)
    env.close()
