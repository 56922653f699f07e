"""Strips, narrow rollouts and settings of malloc, against real arrays and the kernel's counts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3 import PPO

from memfit.dropins import NarrowObservation, StackFrames
from tests.truth.dropin_bytes import frame_strip, held_stacks, narrowed_rollout

pytestmark = [pytest.mark.truth, pytest.mark.timeout(240)]

MIB = 2**20


class Counting(gymnasium.Env[Any, Any]):
    """Whole numbers that come as floats."""

    action_space = spaces.Discrete(2)

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.observation_space = spaces.Box(0, 200, shape, dtype)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.age = 0
        return self._seen(), {}

    def step(self, action: Any) -> Any:
        self.age += 1
        return self._seen(), 0.0, False, self.age >= 9, {}

    def _seen(self) -> Any:
        space = self.observation_space
        return np.full(space.shape, self.age % 200, space.dtype)


@pytest.mark.parametrize(("stack_size", "rows"), [(1, 2), (4, 8), (4, 64), (3, 11)])
@pytest.mark.parametrize("steps", [0, 1, 40, 301])
def test_strips_are_as_large_as_their_formula(stack_size: int, rows: int, steps: int) -> None:
    env = StackFrames(Counting((5, 7), np.float32), stack_size, rows=rows)
    held = [env.reset(seed=1)[0]]
    held += [env.step(0)[0] for _ in range(steps)]
    knobs = {"rows": rows, "episode_steps": steps}
    frame = 5 * 7 * 4
    assert env.nbytes == frame_strip(frame_bytes=frame).evaluate(knobs)
    strips = {id(obs.base): obs.base.nbytes for obs in held}
    size = held_stacks(frame_bytes=frame, stack_size=stack_size)
    assert sum(strips.values()) == size.evaluate(knobs)


@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.float16])
def test_narrow_rollouts_are_as_large_as_their_formula(dtype: Any) -> None:
    env = NarrowObservation(Counting((30,), np.float64), dtype)
    model = PPO("MlpPolicy", env, n_steps=32, batch_size=16, n_epochs=1, device="cpu")
    model.learn(32)
    size = narrowed_rollout(numbers=30, itemsize=np.dtype(dtype).itemsize)
    held = model.rollout_buffer.observations
    assert held.dtype == dtype
    assert held.nbytes == size.evaluate({"n_steps": 32, "n_envs": 1})


def child(code: str, *words: str, **variables: str) -> Any:
    without = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")}
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        check=True,
        timeout=200,
        env={**without, "OMP_WAIT_POLICY": "PASSIVE", **variables},
    )
    return json.loads(done.stdout)


STATUS = """
import json, sys
def status(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))
"""

STACKED = (
    STATUS
    + """
import gymnasium, numpy as np
from gymnasium.wrappers import FrameStackObservation
from memfit.dropins import StackFrames

class Shown(gymnasium.Env):
    action_space = gymnasium.spaces.Discrete(2)
    observation_space = gymnasium.spaces.Box(0, 255, (84, 84), np.uint8)
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.seen(), {}
    def step(self, action):
        return self.seen(), 0.0, False, False, {}
    def seen(self):
        return self.np_random.integers(0, 255, (84, 84), np.uint8)

def held(steps):
    env = {"ours": StackFrames, "gymnasium": FrameStackObservation}[sys.argv[1]](Shown(), 4)
    return [env.reset(seed=1)[0], *(env.step(0)[0] for _ in range(steps))]

held(200)
before = status("VmRSS")
kept = held(4000)
print(json.dumps({"grown": status("VmRSS") - before}))
"""
)


def test_an_episode_that_is_held_takes_each_frame_once() -> None:
    ours, theirs = (child(STACKED, name)["grown"] for name in ("ours", "gymnasium"))
    size = held_stacks(frame_bytes=84 * 84, stack_size=4)
    said = size.evaluate({"rows": 64, "episode_steps": 4000})
    assert abs(ours - said) <= 4 * MIB, (ours, said)
    assert theirs >= 4000 * 4 * 84 * 84 - 4 * MIB


ARENAS = (
    STATUS
    + """
import ctypes, os, threading
from memfit.dropins import apply_settings
apply_settings(**json.loads(sys.argv[1]))
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
COUNT, BYTES = 1500, 4000
every = threading.Barrier(8)

def work():
    # Everything but the last block goes back; it keeps a heap from being given back.
    every.wait()
    blocks = [libc.malloc(BYTES) for _ in range(COUNT)]
    for block in blocks:
        ctypes.memset(block, 1, BYTES)
    every.wait()
    for block in blocks[:-1]:
        libc.free(block)

before = status("VmRSS")
threads = [threading.Thread(target=work) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
libc.malloc_info.argtypes = [ctypes.c_int, ctypes.c_void_p]
libc.fdopen.restype = ctypes.c_void_p
libc.fclose.argtypes = [ctypes.c_void_p]
reader, writer = os.pipe()
stream = libc.fdopen(writer, b"w")
libc.malloc_info(0, stream)
libc.fclose(stream)
told = os.read(reader, 1 << 20).decode()
print(json.dumps({"heaps": told.count("<heap nr"), "resident": status("VmRSS") - before}))
"""
)


def test_malloc_makes_no_more_arenas_than_it_is_told() -> None:
    plain = child(ARENAS, "{}")
    told = child(ARENAS, json.dumps({"arenas": 2}))
    by_variable = child(ARENAS, "{}", MALLOC_ARENA_MAX="2")
    assert plain["heaps"] > 2, "a thread has an arena of its own unless told otherwise"
    assert told["heaps"] == by_variable["heaps"] == 2


LARGE = (
    STATUS
    + """
import numpy as np
from memfit.dropins import apply_settings
apply_settings(**json.loads(sys.argv[1]))
MIB = 2 ** 20
for _ in range(3):  # malloc learns to keep blocks of this size
    blocks = [np.ones(20 * MIB, np.uint8) for _ in range(10)]
    del blocks
before = status("VmRSS")
blocks = []
for _ in range(10):
    blocks += [np.ones(20 * MIB, np.uint8), np.ones(MIB // 8, np.uint8)]
blocks = blocks[1::2]
print(json.dumps({"kept": status("VmRSS") - before}))
"""
)


def test_large_blocks_go_back_at_once_where_malloc_is_told_so() -> None:
    """Without it, 200 MiB that are free stay resident, because small blocks lie between them."""
    plain = child(LARGE, "{}")
    told = child(LARGE, json.dumps({"mmap_threshold": "1MiB"}))
    assert plain["kept"] >= 150 * MIB, plain
    assert told["kept"] <= 10 * MIB, told
