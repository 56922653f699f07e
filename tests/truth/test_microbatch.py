"""Formulas of the micro-batched update, against real tensors, torch's own and the kernel's."""

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
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.vec_env import DummyVecEnv

from memfit.dropins import MicroBatchPPO
from memfit.dropins.updates.probe import _asked, measure, resident
from memfit.dropins.updates.size import UpdateBytes, with_slack
from tests.truth.dropin_bytes import micro_batch_gathered, micro_batch_update

pytestmark = [pytest.mark.truth, pytest.mark.timeout(240)]

MIB = 2**20


class Numbers(gymnasium.Env[Any, Any]):
    """Random observations of a space."""

    def __init__(self, space: spaces.Space[Any], actions: spaces.Space[Any]) -> None:
        self.observation_space = space
        self.action_space = actions

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> Any:
        return self.observation_space.sample(), 0.0, False, False, {}


PIXELS = spaces.Box(0, 255, (1, 40, 40), np.uint8)
SENSORS = spaces.Box(-1, 1, (33,), np.float32)
SPACES: dict[str, tuple[Any, ...]] = {
    "pixels": (PIXELS, spaces.Discrete(3), "CnnPolicy", 1600, 1),
    "sensors": (SENSORS, spaces.Box(-1, 1, (2,)), "MlpPolicy", 33 * 4, 2),
}


def model_of(name: str, **options: Any) -> Any:
    space, actions, policy, *_ = SPACES[name]
    env = DummyVecEnv([lambda: Numbers(space, actions)] * 3)
    return MicroBatchPPO(policy, env, device="cpu", n_epochs=1, **options)


@pytest.mark.parametrize("name", sorted(SPACES))
@pytest.mark.parametrize(("micro", "batch"), [(5, 24), (24, 24), (7, 1000)])
@pytest.mark.filterwarnings("ignore:You have specified a mini-batch size")
def test_what_is_gathered_is_as_large_as_its_formula(
    name: str, micro: int, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    *_, observation, numbers = SPACES[name]
    gather = RolloutBuffer._get_samples
    most = 0

    def watched(self: Any, indices: Any, env: Any = None) -> Any:
        nonlocal most
        found = gather(self, indices)
        most = max(most, sum(tensor.nbytes for tensor in found))
        return found

    monkeypatch.setattr(RolloutBuffer, "_get_samples", watched)
    model = model_of(name, n_steps=16, batch_size=batch, micro_batch_size=micro)
    model.learn(48)
    orders = list(model._minibatches())
    largest = max(orders, key=len)
    order = largest.base if largest.base is not None else largest
    advantages = model.rollout_buffer.to_torch(model.rollout_buffer.advantages[largest])
    size = micro_batch_gathered(observation_bytes=observation, action_numbers=numbers)
    knobs = {"n_steps": 16, "n_envs": 3, "batch_size": batch, "micro_batch_size": micro}
    assert most + order.nbytes + advantages.nbytes == size.evaluate(knobs)


def measured(name: str, samples: int) -> tuple[Any, UpdateBytes]:
    """How to ask what updates take, and what was found with at most so many samples."""
    model = model_of(name, n_steps=64, batch_size=192, micro_batch_size=4)
    model.learn(192)
    buffer = model.rollout_buffer

    def update(samples: int) -> None:
        indices = np.arange(samples)
        advantages = buffer.to_torch(buffer.advantages[indices].flatten())
        model._losses(indices, advantages, (0.2, None))[0].backward()

    took = measure(update, samples, [model.policy], limit=2**50)
    return lambda samples: _asked(update, samples, [model.policy]), took


@pytest.mark.parametrize("name", [pytest.param("pixels", marks=pytest.mark.slow), "sensors"])
@pytest.mark.parametrize("samples", [pytest.param(4, marks=pytest.mark.slow), 64])
def test_torch_asks_for_what_was_measured_and_never_more_than_its_formula(
    name: str, samples: int
) -> None:
    asked, took = measured(name, samples)
    assert took.samples == samples
    size = micro_batch_update(
        samples=samples, asked_bytes=took.asked, gradient_bytes=took.gradients
    )
    for micro in (1, samples, samples + 1, 96, 192, 1000):
        said = size.evaluate({"micro_batch_size": micro, "batch_size": 192})
        assert took.peak(min(micro, 192)) == took.resident + with_slack(said)
        true = asked(min(micro, 192))
        assert true <= said, (micro, true, said)
        assert micro != samples or true == said


def test_workers_count_by_what_they_hold() -> None:
    code = "import sys; held = b'x' * (64 << 20); print('ready', flush=True); sys.stdin.read()"
    before = resident()
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as worker:
        assert worker.stdout is not None and worker.stdin is not None
        assert worker.stdout.readline() == b"ready\n"
        held = resident() - before
        worker.stdin.close()
    assert 64 * MIB <= held <= 90 * MIB
    assert abs(resident() - before) <= 2 * MIB


CHILD = """
import json, sys
import gymnasium, numpy as np, torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv
from memfit.dropins import MicroBatchPPO

kind, limit, policy, batch = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
pixels = policy == "CnnPolicy"

class Shown(gymnasium.Env):
    action_space = gymnasium.spaces.Discrete(4)
    observation_space = (
        gymnasium.spaces.Box(0, 255, (4, 84, 84), np.uint8) if pixels
        else gymnasium.spaces.Box(-1, 1, (600,), np.float32)
    )
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.seen(), {}
    def step(self, action):
        return self.seen(), 1.0, False, False, {}
    def seen(self):
        if pixels:
            return self.np_random.integers(0, 255, (4, 84, 84), np.uint8)
        return self.np_random.uniform(-1, 1, 600).astype(np.float32)

more = {} if pixels else {"policy_kwargs": {"net_arch": [512, 512]}}
of, limited = {"plain": (PPO, {}), "limited": (MicroBatchPPO, {"memory_limit": limit})}[kind]
env = DummyVecEnv([Shown] * 16)
torch.set_num_threads(2)
model = of(policy, env, n_steps=batch // 16, batch_size=batch, n_epochs=1, seed=1, device="cpu",
           **more, **limited)
def status(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))
built = status("VmRSS")
model.learn(2 * batch)
print(json.dumps({
    "built": built, "peak": status("VmHWM"), "size": getattr(model, "samples_at_once", None)
}))
"""


def child(*words: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *words],
        capture_output=True,
        text=True,
        check=True,
        timeout=200,
        env={**os.environ, "OMP_WAIT_POLICY": "PASSIVE"},
    )
    assert not done.stderr, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("policy", "batch", "room"),
    [("CnnPolicy", 512, 0.55), ("MlpPolicy", 4096, 0.65)],
)
@pytest.mark.slow
def test_a_limit_is_kept_where_plain_ppo_goes_over(policy: str, batch: int, room: float) -> None:
    """The limit is so much of what the library's own update adds."""
    plain = child("plain", "0", policy, str(batch))
    limit = int(plain["built"] + room * (plain["peak"] - plain["built"]))
    limited = child("limited", str(limit), policy, str(batch))
    assert 1 <= limited["size"] < batch
    assert limited["peak"] <= limit < plain["peak"], (plain, limited)
