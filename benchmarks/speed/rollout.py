"""Rollouts of histories and of stacked pixels: bytes, and the time of an epoch of minibatches."""

from __future__ import annotations

import zlib
from functools import partial
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.buffers import RolloutBuffer

from benchmarks.speed.timing import against, in_turns
from memfit.dropins import WindowRolloutBuffer

SMALL_ARRAYS = (
    "actions",
    "rewards",
    "returns",
    "episode_starts",
    "values",
    "log_probs",
    "advantages",
)
CLASSES = {"stable-baselines3": RolloutBuffer, "memfit": WindowRolloutBuffer}


def nbytes(buffer: Any) -> int:
    """All arrays of a rollout buffer."""
    obs = buffer.observations.nbytes
    return int(obs) + sum(int(getattr(buffer, name).nbytes) for name in SMALL_ARRAYS)


def compare(
    space: spaces.Box, n_steps: int, n_envs: int, batches: tuple[int, ...], rounds: int
) -> Any:
    """Fill both buffers with the same windows, then sample them in turns."""
    buffers = {
        name: of(n_steps, space, spaces.Discrete(3), "cpu", n_envs=n_envs)
        for name, of in CLASSES.items()
    }
    rng = np.random.default_rng(0)
    length, *frame = space.shape
    series = rng.integers(0, 255, (n_envs, n_steps + length, *frame)).astype(space.dtype)
    zeros, flat = torch.zeros(n_envs), np.zeros(n_envs)
    adding: dict[str, list[float]] = {name: [] for name in buffers}
    for turn in range(2):  # the first finds the window
        for buffer in buffers.values():
            buffer.reset()
        for step in range(n_steps):
            obs = np.ascontiguousarray(series[:, step : step + length])
            given = (obs, np.zeros((n_envs, 1)), flat, flat, zeros, zeros)
            work = {k: partial(b.add, *given) for k, b in buffers.items()}
            taken = in_turns(work, 1)
            for name, seconds in taken.items():
                adding[name].extend(seconds if turn else [])
    held = {name: nbytes(buffer) for name, buffer in buffers.items()}
    wrong = _wrong(buffers, batches[0])
    epochs = {}
    for batch in batches:
        work = {name: lambda b=b, n=batch: _epoch(b, n) for name, b in buffers.items()}
        epochs[str(batch)] = against(in_turns(work, rounds), "stable-baselines3")
    return {
        "shape": [n_steps, n_envs, *space.shape],
        "dtype": str(space.dtype),
        "bytes": held,
        "times_fewer": held["stable-baselines3"] / held["memfit"],
        "wrong_minibatches": wrong,
        "epochs": epochs,
        "add": against({k: [sum(v)] for k, v in adding.items()}, "stable-baselines3"),
    }


def _epoch(buffer: Any, batch: int) -> None:
    for _ in buffer.get(batch):
        pass


def _wrong(buffers: dict[str, Any], batch: int) -> int:
    """Minibatches that are not equal to the bit."""
    made = []
    for buffer in buffers.values():
        np.random.seed(0)
        made.append(
            [tuple(zlib.crc32(part.numpy()) for part in data) for data in buffer.get(batch)]
        )
    return sum(a != b for a, b in zip(*made, strict=True))


def measure(*, small: bool) -> dict[str, Any]:
    """Both shapes of the table."""
    envs, rounds = (32, 5) if small else (256, 15)
    history = spaces.Box(-1e9, 1e9, (1804,), np.float32)
    pixels = spaces.Box(0, 255, (4, 84, 84), np.uint8)
    return {
        "history": compare(history, 100, envs, (64, 256, 1024), rounds),
        "pixels": compare(pixels, 64 if small else 256, 4, (64, 256), rounds),
    }
