"""Buffers filled for a rehearsal take as much memory as real steps do."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces

from memfit.dropins import WindowReplayBuffer, WindowRolloutBuffer

SPACE = spaces.Box(0, 255, (4, 8, 8), np.uint8)
PLAIN = spaces.Box(0, 1, (5,), np.float64)
ACTIONS = spaces.Discrete(2)
STEPS, ENVS, REAL = 64, 3, 16


def shown(step: int, rng: np.random.Generator) -> Any:
    """Stacks of a timeline that is the same in each call for one generator's seed."""
    frames = rng.integers(0, 255, (ENVS, STEPS + 5, 8, 8), np.uint8)
    return frames[:, step : step + 4]


def filled(buffer: Any, steps: int, of: Callable[[int], Any] | None = None) -> Any:
    seen = of or (lambda step: shown(step, np.random.default_rng(0)))
    for step in range(steps):
        obs, after = seen(step), seen(step + 1)
        if isinstance(buffer, WindowRolloutBuffer):
            zeros = torch.zeros(ENVS)
            starts = np.full(ENVS, step == 0)
            buffer.add(obs, np.zeros((ENVS, 1)), np.zeros(ENVS), starts, zeros, zeros)
        else:
            never, actions = np.zeros(ENVS, np.bool_), np.zeros((ENVS, 1), np.int64)
            buffer.add(obs, after, actions, np.zeros(ENVS), never, [{}] * ENVS)
    return buffer


def made(kind: type[Any], space: spaces.Box = SPACE) -> Any:
    size = STEPS * ENVS if kind is WindowReplayBuffer else STEPS
    return kind(size, space, ACTIONS, "cpu", n_envs=ENVS)


@pytest.mark.parametrize("kind", [WindowRolloutBuffer, WindowReplayBuffer])
def test_what_is_no_window_takes_room_too(kind: type[Any]) -> None:
    real, repeated = (made(kind, PLAIN) for _ in range(2))
    for buffer, steps in ((real, STEPS), (repeated, REAL)):
        filled(buffer, steps, lambda s: np.random.default_rng(s).random((ENVS, 5)))
    repeated.repeat(REAL, STEPS)
    assert repeated.observation_nbytes == real.observation_nbytes
    for track in repeated.tracks.values():
        assert len(np.unique(track.starts[0])) == STEPS * ENVS


def test_a_replay_goes_on_after_it() -> None:
    buffer = filled(made(WindowReplayBuffer), REAL)
    buffer.repeat(REAL, STEPS)
    assert buffer.full and buffer.pos == 0
    filled(buffer, 2)
    assert buffer.pos == 2


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
