"""Buffer formulas are equal to the real buffers' bytes, for every buffer of the library."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memfit.formulas.array_bytes import reserved, resident, row_bytes
from memfit.libraries.sb3 import facts
from memfit.model import RunSpec

pytest.importorskip("stable_baselines3")
from gymnasium import spaces
from sb3_contrib.common.maskable.buffers import MaskableRolloutBuffer
from sb3_contrib.common.recurrent.buffers import RecurrentRolloutBuffer
from stable_baselines3.common.buffers import (
    DictReplayBuffer,
    DictRolloutBuffer,
    NStepReplayBuffer,
    ReplayBuffer,
    RolloutBuffer,
)

IMAGE = spaces.Box(0, 255, (3, 12, 14), np.uint8)
VECTOR = spaces.Box(-1, 1, (17,), np.float64)
BOTH = spaces.Dict({"image": IMAGE, "vector": VECTOR})
STEER = spaces.Box(-1, 1, (3,), np.float32)
PRESS = spaces.Discrete(5)


class Holder:
    """As much of an algorithm as reading its buffer's arrays needs."""

    def __init__(self, n_envs: int, **buffers: Any) -> None:
        self.n_envs = n_envs
        vars(self).update(buffers)


def spec_of(holder: Any, on_policy: bool, **knobs: int) -> RunSpec:
    arrays = facts.rollout_arrays(holder) if on_policy else facts.replay_arrays(holder)
    return RunSpec(
        library="stable-baselines3",
        version="",
        algorithm="",
        policy="",
        knobs={"n_envs": holder.n_envs, **knobs},
        on_policy=on_policy,
        arrays=tuple(arrays),
    )


def full_bytes(spec: RunSpec) -> int:
    return sum(reserved(array, spec.knobs).evaluate(spec.knobs) for array in spec.arrays)


def real_bytes(buffer: Any) -> int:
    total = 0
    for value in vars(buffer).values():
        for item in value.values() if isinstance(value, dict) else [value]:
            total += item.nbytes if isinstance(item, np.ndarray) else 0
    return total


ROLLOUTS: dict[str, tuple[Any, ...]] = {
    "plain image": (RolloutBuffer, IMAGE, PRESS),
    "plain vector": (RolloutBuffer, VECTOR, STEER),
    "dict": (DictRolloutBuffer, BOTH, STEER),
    "maskable": (MaskableRolloutBuffer, IMAGE, PRESS),
}
REPLAYS: dict[str, tuple[Any, ...]] = {
    "plain image": (ReplayBuffer, IMAGE, PRESS, {}),
    "optimized": (
        ReplayBuffer,
        IMAGE,
        PRESS,
        {"optimize_memory_usage": True, "handle_timeout_termination": False},
    ),
    "n-step": (NStepReplayBuffer, VECTOR, STEER, {"n_steps": 3}),
    "dict": (DictReplayBuffer, BOTH, STEER, {}),
}


@pytest.mark.parametrize("name", ROLLOUTS)
@settings(max_examples=20)
@given(n_steps=st.integers(2, 64), n_envs=st.integers(1, 9))
def test_a_rollout_formula_is_the_real_buffer(name: str, n_steps: int, n_envs: int) -> None:
    kind, observation, action = ROLLOUTS[name]
    buffer = kind(n_steps, observation, action, device="cpu", n_envs=n_envs)
    spec = spec_of(Holder(n_envs, rollout_buffer=buffer), True, n_steps=n_steps)
    assert full_bytes(spec) == real_bytes(buffer)


@settings(max_examples=20)
@given(n_steps=st.integers(2, 64), n_envs=st.integers(1, 9), layers=st.integers(1, 3))
def test_a_recurrent_rollout_formula_is_the_real_buffer(
    n_steps: int, n_envs: int, layers: int
) -> None:
    shape = (n_steps, layers, n_envs, 24)
    buffer = RecurrentRolloutBuffer(n_steps, VECTOR, STEER, shape, device="cpu", n_envs=n_envs)
    spec = spec_of(Holder(n_envs, rollout_buffer=buffer), True, n_steps=n_steps)
    assert full_bytes(spec) == real_bytes(buffer)
    # and it scales with the envs, not with the layers
    bigger = {**spec.knobs, "n_envs": 2 * n_envs}
    state = next(a for a in spec.arrays if a.name.endswith("hidden_states_pi"))
    double = reserved(state, bigger).evaluate(bigger)
    assert double == 2 * buffer.hidden_states_pi.nbytes


@pytest.mark.parametrize("name", REPLAYS)
@settings(max_examples=20)
@given(buffer_size=st.integers(8, 600), n_envs=st.integers(1, 9), steps=st.integers(1, 900))
def test_a_replay_formula_is_the_real_buffer(
    name: str, buffer_size: int, n_envs: int, steps: int
) -> None:
    kind, observation, action, options = REPLAYS[name]
    buffer = kind(buffer_size, observation, action, device="cpu", n_envs=n_envs, **options)
    holder = Holder(n_envs, replay_buffer=buffer)
    spec = spec_of(holder, False, buffer_size=buffer_size, total_timesteps=steps)
    assert full_bytes(spec) == real_bytes(buffer)
    first = spec.arrays[0]
    filled = resident(first, spec.knobs).evaluate(spec.knobs)
    rows = min(buffer.buffer_size, -(-steps // n_envs))
    assert filled == rows * row_bytes(first, spec.knobs).evaluate(spec.knobs)
