"""Buffers filled for a rehearsal take as much memory as real steps do."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces

from memfit.dropins import WindowReplayBuffer, WindowRolloutBuffer

SPACE = spaces.Box(0, 255, (4, 8, 8), np.uint8)
ACTIONS = spaces.Discrete(2)
STEPS, ENVS, REAL = 64, 3, 16


def shown(step: int, rng: np.random.Generator) -> Any:
    """Stacks of a timeline that is the same in each call for one generator's seed."""
    frames = rng.integers(0, 255, (ENVS, STEPS + 5, 8, 8), np.uint8)
    return frames[:, step : step + 4]


def filled(buffer: Any, steps: int) -> Any:
    for step in range(steps):
        obs, after = (shown(s, np.random.default_rng(0)) for s in (step, step + 1))
        if isinstance(buffer, WindowRolloutBuffer):
            zeros = torch.zeros(ENVS)
            starts = np.full(ENVS, step == 0)
            buffer.add(obs, np.zeros((ENVS, 1)), np.zeros(ENVS), starts, zeros, zeros)
        else:
            never, actions = np.zeros(ENVS, np.bool_), np.zeros((ENVS, 1), np.int64)
            buffer.add(obs, after, actions, np.zeros(ENVS), never, [{}] * ENVS)
    return buffer


def made(kind: type[Any]) -> Any:
    size = STEPS * ENVS if kind is WindowReplayBuffer else STEPS
    return kind(size, SPACE, ACTIONS, "cpu", n_envs=ENVS)


@pytest.mark.parametrize("kind", [WindowRolloutBuffer, WindowReplayBuffer])
def test_the_rest_goes_on_from_what_is_there(kind: type[Any]) -> None:
    real, repeated = filled(made(kind), STEPS), filled(made(kind), REAL)
    before = np.asarray(repeated.observations)[:REAL].copy()
    repeated.repeat(REAL, STEPS)
    assert repeated.observation_nbytes == real.observation_nbytes
    assert repeated.report()[0].parts == real.report()[0].parts
    found = np.asarray(repeated.observations)
    assert (found[:REAL] == before).all()
    assert (found[REAL:, :, :3] == found[REAL - 1 : -1, :, 1:]).all()


def test_a_copy_has_nothing_in_common_with_its_original() -> None:
    original = filled(made(WindowRolloutBuffer), REAL)
    before = np.asarray(original.observations).copy()
    other = copy.copy(original)
    other.buffer_size = 4
    other.reset()
    filled(other, 4)
    assert other.observations.shape[0] == 4
    assert (np.asarray(original.observations) == before).all()
