"""Synthetic Gymnasium environments that the benchmark's training scripts share.

``make`` builds one from a short specification, or passes a Gymnasium id on::

    make("CartPole-v1")
    make("vector:64")
    make("vector:64,dtype=float64,actions=box6")
    make("image:84x84x3,actions=discrete6,level=5")
    make("dict:48x48x3+16,actions=discrete4,length=120")
    make("goal:10,actions=box3,length=50")

``actions`` is one of ``discreteN``, ``boxN``, ``multidiscreteN`` (N choices of three) and
``multibinaryN``; ``level`` is the size in MiB of the array each environment keeps as its own
state; ``length`` is the mean length of an episode.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces


class SyntheticEnv(gym.Env[Any, Any]):
    """An environment with episodes of random length and observations that change every step."""

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        length: int = 200,
        level_mib: int = 0,
    ) -> None:
        self.observation_space = observation_space
        self.action_space = action_space
        self._length = length
        self._left = 0
        self._level = np.zeros(0, dtype=np.uint8)
        if level_mib:
            self._level = np.frombuffer(
                np.random.default_rng(0).bytes(level_mib << 20), dtype=np.uint8
            ).copy()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode whose length is drawn anew."""
        super().reset(seed=seed)
        self._left = int(self.np_random.integers(self._length // 2, self._length * 3 // 2 + 1))
        return self._observe(self.observation_space), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Advance by one step, with a reward that depends on the action."""
        self._left -= 1
        over = self._left <= 0
        truncated = over and bool(self.np_random.random() < 0.5)
        if self._level.size:
            self._level[int(self.np_random.integers(self._level.size))] ^= 1
        reward = float(np.tanh(np.sum(action)) + 0.1 * self.np_random.standard_normal())
        return self._observe(self.observation_space), reward, over and not truncated, truncated, {}

    def action_masks(self) -> np.ndarray:
        """Which actions are allowed now, for algorithms that mask."""
        if isinstance(self.action_space, spaces.MultiDiscrete):
            size = int(np.sum(self.action_space.nvec))
        else:
            assert isinstance(self.action_space, spaces.Discrete)
            size = int(self.action_space.n)
        mask = self.np_random.random(size) < 0.7
        mask[0] = True
        return mask

    def _observe(self, space: spaces.Space[Any]) -> Any:
        if isinstance(space, spaces.Dict):
            return {key: self._observe(part) for key, part in space.spaces.items()}
        assert isinstance(space, spaces.Box)
        if space.dtype == np.uint8:
            count = int(np.prod(space.shape))
            return np.frombuffer(self.np_random.bytes(count), dtype=np.uint8).reshape(space.shape)
        return self.np_random.random(space.shape, dtype=space.dtype.type) * 2 - 1


class GoalEnv(SyntheticEnv):
    """A reaching task with goals, whose reward can be recomputed as hindsight replay needs."""

    def __init__(self, size: int, action_space: spaces.Space[Any], length: int = 50) -> None:
        goal = spaces.Box(-np.inf, np.inf, (3,), np.float32)
        space = spaces.Dict(
            observation=spaces.Box(-np.inf, np.inf, (size,), np.float32),
            achieved_goal=goal,
            desired_goal=goal,
        )
        super().__init__(space, action_space, length)

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, _info: Any) -> Any:
        """Sparse reward: 0 near the goal and -1 elsewhere, for one goal or for a batch."""
        distance = np.linalg.norm(np.asarray(achieved_goal) - np.asarray(desired_goal), axis=-1)
        return -(distance > 0.5).astype(np.float32)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Advance by one step; an episode only ends by its time limit."""
        self._left -= 1
        observation = self._observe(self.observation_space)
        achieved, desired = observation["achieved_goal"], observation["desired_goal"]
        reward = float(self.compute_reward(achieved, desired, None))
        return observation, reward, False, self._left <= 0, {"is_success": reward == 0.0}


def _shape(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("x"))


def _image(text: str) -> spaces.Box:
    return spaces.Box(0, 255, _shape(text), np.uint8)


def _vector(text: str, dtype: str = "float32") -> spaces.Box:
    return spaces.Box(-np.inf, np.inf, _shape(text), np.dtype(dtype).type)


def _actions(text: str) -> spaces.Space[Any]:
    kind = text.rstrip("0123456789")
    count = int(text[len(kind) :])
    if kind == "discrete":
        return spaces.Discrete(count)
    if kind == "box":
        return spaces.Box(-1.0, 1.0, (count,), np.float32)
    if kind == "multidiscrete":
        return spaces.MultiDiscrete([3] * count)
    if kind == "multibinary":
        return spaces.MultiBinary(count)
    raise ValueError(f"unknown action space: {text}")


def make(spec: str) -> gym.Env[Any, Any]:
    """Build the environment that a specification or a Gymnasium id names."""
    if ":" not in spec:
        return gym.make(spec)
    kind, _, rest = spec.partition(":")
    size, *pairs = rest.split(",")
    options = dict(pair.split("=") for pair in pairs)
    actions = _actions(options.get("actions", "discrete4"))
    length = int(options.get("length", "200"))
    if kind == "goal":
        return GoalEnv(int(size), actions, length)
    observation: spaces.Space[Any]
    if kind == "vector":
        observation = _vector(size, options.get("dtype", "float32"))
    elif kind == "image":
        observation = _image(size)
    elif kind == "dict":
        image, _, vector = size.partition("+")
        observation = spaces.Dict(image=_image(image), vector=_vector(vector))
    else:
        raise ValueError(f"unknown environment: {spec}")
    return SyntheticEnv(observation, actions, length, int(options.get("level", "0")))
