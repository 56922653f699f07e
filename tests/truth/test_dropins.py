"""Formulas of the windowed buffers, against their real arrays and the kernel's counts."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from gymnasium import spaces

from memfit.dropins import Window, WindowReplayBuffer, WindowRolloutBuffer
from memfit.dropins.windows.compressed import CACHE_BYTES
from memfit.formulas.dropin_arrays import window_replay, window_rollout

pytestmark = [pytest.mark.truth, pytest.mark.timeout(120)]

PARTS = [(1, 7, 1), (4, 6, 1), (20, 2, 2), (30, 1, 3)]  # length, numbers of a row, new rows


def moving(length: int, row: int, new: int, n_envs: int, seed: int) -> np.ndarray:
    """A history of each env that is long enough to look at through a window."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 255, (n_envs, 4000 + length, row)).astype(np.uint8)


@pytest.mark.parametrize(("length", "row", "new"), PARTS)
@pytest.mark.parametrize("n_envs", [1, 3])
@pytest.mark.parametrize("n_steps", [1, 40])
def test_rollouts_are_as_large_as_their_formula(
    length: int, row: int, new: int, n_envs: int, n_steps: int
) -> None:
    space = spaces.Box(0, 255, (length * row,), np.uint8)
    windows = [Window(length=length, inner=row, new=new)]
    buffer = WindowRolloutBuffer(
        n_steps, space, spaces.Discrete(2), "cpu", n_envs=n_envs, windows=windows
    )
    seen = moving(length, row, new, n_envs, 0)
    zeros = torch.zeros(n_envs)
    for step in range(n_steps):
        at = seen[:, step * new : step * new + length].reshape(n_envs, -1)
        buffer.add(at, np.zeros((n_envs, 1)), np.zeros(n_envs), np.zeros(n_envs), zeros, zeros)
    size = window_rollout(length=length, row_bytes=row, new=new)
    assert buffer.observation_nbytes == size.evaluate({"n_steps": n_steps, "n_envs": n_envs})


@pytest.mark.parametrize(("length", "row", "new"), PARTS)
@pytest.mark.parametrize(("n_envs", "episode"), [(1, 10**6), (1, 13), (3, 10**6)])
@pytest.mark.parametrize("steps", [1, 70, 900])
def test_replays_are_as_large_as_their_formula(
    length: int, row: int, new: int, n_envs: int, steps: int, episode: int
) -> None:
    space = spaces.Box(0, 255, (length * row,), np.uint8)
    buffer = WindowReplayBuffer(
        900 * n_envs,
        space,
        spaces.Discrete(2),
        "cpu",
        n_envs=n_envs,
        windows=[Window(length=length, inner=row, new=new)],
    )
    rng = np.random.default_rng(0)
    window = rng.integers(0, 255, (n_envs, length, row)).astype(np.uint8)
    episodes = 0
    for step in range(steps):
        rows = rng.integers(0, 255, (n_envs, new, row)).astype(np.uint8)
        after = np.concatenate([window, rows], axis=1)[:, new:]
        done = np.full(n_envs, (step + 1) % episode == 0)
        flat = (window.reshape(n_envs, -1), after.reshape(n_envs, -1))
        buffer.add(*flat, np.zeros((n_envs, 1)), np.zeros(n_envs), done, [{}] * n_envs)
        window = after
        if done.all():
            window = rng.integers(0, 255, window.shape).astype(np.uint8)
            episodes += step + 1 < steps
    size = window_replay(length=length, row_bytes=row, new=new, n_envs=n_envs)
    knobs = {
        "buffer_size": 900 * n_envs,
        "total_timesteps": steps * n_envs,
        "episodes": episodes,
    }
    assert buffer.observation_nbytes == size.evaluate(knobs)


CHILD = """
import json, sys
import numpy as np, torch
from gymnasium import spaces
from stable_baselines3.common.buffers import RolloutBuffer
from memfit.dropins import WindowRolloutBuffer

def resident():
    with open("/proc/self/smaps_rollup") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("Rss:"))

T, E, N = 100, 64, 1804
space = spaces.Box(-1, 1, (N,), np.float32)
of = {"library": RolloutBuffer, "window": WindowRolloutBuffer}[sys.argv[1]]
zeros, flat = torch.zeros(E), np.zeros(E)
seen = np.random.default_rng(0).random((E, N + T), dtype=np.float32)

def fill(buffer, steps):
    for step in range(steps):
        obs = np.ascontiguousarray(seen[:, step:step + N])
        buffer.add(obs, np.zeros((E, 1)), flat, flat, zeros, zeros)

def epoch(buffer, batches):
    for i, batch in enumerate(buffer.get(64)):
        if i == batches: break

small = of(2, space, spaces.Discrete(2), "cpu", n_envs=E)
fill(small, 2); epoch(small, 3); del small
before = resident()
buffer = of(T, space, spaces.Discrete(2), "cpu", n_envs=E)
fill(buffer, T)
filled = resident()
epoch(buffer, 10 ** 6)
print(json.dumps({"filled": filled - before, "sampled": resident() - before}))
"""


def test_the_kernel_counts_what_the_formula_says() -> None:
    """The growth of a real process; the library's buffer for comparison."""
    grown = {}
    for kind in ("library", "window"):
        done = subprocess.run(
            [sys.executable, "-c", CHILD, kind], capture_output=True, text=True, check=True
        )
        grown[kind] = json.loads(done.stdout)
    knobs = {"n_steps": 100, "n_envs": 64}
    ours = window_rollout(length=1804, row_bytes=4).evaluate(knobs)
    others = 100 * 64 * 32
    minibatches = 2 * 64 * 1804 * 4
    dense = 100 * 64 * 1804 * 4
    slack = 2 << 20  # pages that the allocator keeps
    assert abs(grown["window"]["filled"] - ours - others) <= slack, grown
    assert grown["window"]["sampled"] <= ours + 2 * others + minibatches + slack, grown
    assert grown["library"]["filled"] >= dense - slack, grown


COMPRESSED = """
import ctypes, json, sys
import numpy as np
from gymnasium import spaces
from memfit.dropins import WindowReplayBuffer

def resident():
    with open("/proc/self/smaps_rollup") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("Rss:"))

rng = np.random.default_rng(0)
space = spaces.Box(0, 255, (4, 84, 84), np.uint8)

def fill(steps):
    buffer = WindowReplayBuffer(
        20_000, space, spaces.Discrete(2), "cpu", compression=sys.argv[1]
    )
    picture = rng.integers(0, 60, (84, 84)).astype(np.uint8)
    stack = np.stack([picture] * 4)[None]
    zero = np.zeros(1)
    for _ in range(steps):
        picture[rng.integers(84), rng.integers(84)] = 200
        after = np.concatenate([stack[:, 1:], picture[None, None]], axis=1)
        buffer.add(stack, after, np.zeros((1, 1)), zero, zero, [{}])
        stack = after
    buffer.sample(64)
    return buffer

fill(700).close()
# Of what was freed, malloc gives back now more and now less: all of it, so that no part of what
# the second buffer takes is already there.
ctypes.CDLL(None).malloc_trim(0)
before = resident()
buffer = fill(6000)
print(json.dumps({"grown": resident() - before, "held": buffer.observation_nbytes}))
"""


@pytest.mark.parametrize("name", ["zstd", "lz4"])
def test_compressed_blocks_leave_no_holes_between_them(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", COMPRESSED, name], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    minibatches = 2 * 64 * 4 * 84 * 84
    slack = 2 << 20  # pages that the allocator keeps
    assert found["grown"] <= found["held"] + CACHE_BYTES + minibatches + slack, found
