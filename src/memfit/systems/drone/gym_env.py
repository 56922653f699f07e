"""The drones as Gymnasium environments: all of them as a vector env, or one alone."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from memfit.systems.drone.described import DescribedEnv
from memfit.systems.drone.flight import Flight
from memfit.systems.drone.settings import ACTIONS, EPISODE, TARGETS, Settings

# The sensor's range is 4 g and 500 degrees a second; in an episode no drone gets farther than this.
MOST_FELT, MOST_FAR = 9.0, 32.0

Array = np.ndarray[Any, np.dtype[Any]]


def spaces(settings: Settings) -> tuple[gym.spaces.Box, gym.spaces.Box]:
    """The observation and action space of one drone."""
    high = np.full(settings.observation, MOST_FELT, np.float32)
    high[-TARGETS:] = MOST_FAR
    return (
        gym.spaces.Box(-high, high, dtype=np.float32),
        gym.spaces.Box(-1.0, 1.0, (ACTIONS,), np.float32),
    )


class DroneVectorEnv(VectorEnv[Array, Array, Array]):
    """Any number of drones; all begin and end their episodes together."""

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012 - Gymnasium's own form

    def __init__(self, num_envs: int = 1, *, history: int = 300, every: int = 1) -> None:
        settings = Settings(agents=num_envs, history=history, every=every, storage="float32")
        self.num_envs = num_envs
        self.single_observation_space, self.single_action_space = spaces(settings)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._drones = DescribedEnv(settings, Flight(num_envs, seed=0, device="cpu"))
        self._over = False

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        if isinstance(seed, list):
            seed = seed[0]
        super().reset(seed=seed)
        if seed is not None:
            self._drones.flight.random.manual_seed(seed)
        self._over = False
        return self._drones.reset().numpy().copy(), {}

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        never = np.zeros(self.num_envs, dtype=bool)
        if self._over:  # the step after the last one begins a new episode
            observations, info = self.reset()
            return observations, np.zeros(self.num_envs), never, never, info
        given = torch.from_numpy(np.ascontiguousarray(actions, dtype=np.float32))
        seen, rewards = self._drones.step(given)
        self._over = self._drones.step_count >= EPISODE
        ended = np.full(self.num_envs, self._over)
        return seen.numpy().copy(), rewards.double().numpy(), never, ended, {}


class DroneEnv(gym.Env[Array, Array]):
    """One drone."""

    metadata = {"render_modes": []}  # noqa: RUF012 - Gymnasium's own form

    def __init__(self, *, history: int = 300, every: int = 1) -> None:
        self._all = DroneVectorEnv(1, history=history, every=every)
        self.observation_space = self._all.single_observation_space
        self.action_space = self._all.single_action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        observations, info = self._all.reset(seed=seed)
        return observations[0], info

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        observations, rewards, _, ended, info = self._all.step(action[None])
        return observations[0], float(rewards[0]), False, bool(ended[0]), info
