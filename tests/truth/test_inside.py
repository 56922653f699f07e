"""Real trainings say who holds their memory, in the words of the run, and are not changed by it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memfit.measure.children import launch
from tests.inside.target import SECONDS, Answer, Target, asked

pytestmark = [pytest.mark.truth, pytest.mark.timeout(400)]

FLOAT = 4

PPO = """
import gymnasium as gym
import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

class Remembers(gym.Wrapper):
    def __init__(self, env):
        super().__init__(env)
        self.history = np.ones(200_000)

class Ask(BaseCallback):
    def _on_step(self):
        if self.num_timesteps == 600:
            ready()
        return True

def make():
    return gym.wrappers.TimeLimit(Remembers(gym.make("CartPole-v1")), 50)

env = VecNormalize(DummyVecEnv([make] * 4))
model = PPO("MlpPolicy", env, n_steps=64, batch_size=64, device="cpu", seed=0)
model.learn(700, callback=Ask())
"""


@pytest.mark.slow
def test_ppo(tmp_path: Path) -> None:
    with Target(PPO, tmp_path) as target:
        answer = target.ask()
        target.end()
    rollout = "model.rollout_buffer"
    assert answer.nbytes(f"{rollout}.observations") == 64 * 4 * 4 * FLOAT
    assert answer.nbytes(f"{rollout}.rewards") == 64 * 4 * FLOAT
    for index in range(4):
        assert answer.nbytes(f"envs[{index}].history") == 200_000 * 8
    weights = "model.policy.mlp_extractor.policy_net.0.weight"
    assert answer.nbytes(weights) == 64 * 4 * FLOAT
    assert answer.nbytes(f"{weights} grad") == 64 * 4 * FLOAT
    parameters = sum(
        row["nbytes"]
        for holder, row in answer.arrays.items()
        if holder.startswith("model.policy.") and holder.endswith((".weight", ".bias"))
    )
    assert parameters == (2 * (4 * 64 + 64 + 64 * 64 + 64) + 64 * 2 + 2 + 64 + 1) * FLOAT
    for moment in ("exp_avg", "exp_avg_sq"):
        assert answer.nbytes(f"model.policy.optimizer {moment}") == parameters


DQN = """
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback

class Ask(BaseCallback):
    def _on_step(self):
        if self.num_timesteps == 1500:
            ready()
        return True

DQN("MlpPolicy", "CartPole-v1", buffer_size=20_000, device="cpu", seed=0).learn(1600, Ask())
"""


@pytest.mark.slow
def test_dqn_without_a_variable(tmp_path: Path) -> None:
    with Target(DQN, tmp_path) as target:
        answer = target.ask(duplicates=True)
        target.end()
    for name in ("observations", "next_observations"):
        row = answer.arrays[f"model.replay_buffer.{name}"]
        assert (row["nbytes"], row["shape"]) == (20_000 * 4 * FLOAT, [20_000, 1, 4])
    assert answer.nbytes("model.q_net.q_net.0.weight") == 64 * 4 * FLOAT
    assert answer.nbytes("model.q_net_target.q_net.0.weight") == 64 * 4 * FLOAT
    found = {finding["kind"]: finding for finding in answer.fields["duplicates"]}
    shifted = found["shifted rows"]
    assert shifted["holders"] == [
        "model.replay_buffer.next_observations",
        "model.replay_buffer.observations",
    ]
    assert 0.5 * 320_000 <= shifted["saved_bytes"] <= 320_000


TORCH = """
import collections
import numpy as np
import torch
from torch import nn

class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(32, 600), nn.Tanh(), nn.Linear(600, 2))
        self.register_buffer("mean", torch.zeros(30_000))

def train():
    agent = Agent()
    optimizer = torch.optim.Adam(
        [{"params": agent.actor[0].parameters()}, {"params": agent.actor[2].parameters()}]
    )
    trajectory = []
    recent = collections.deque(maxlen=50)
    for step in range(100):
        observation = torch.randn(4, 32)
        loss = agent.actor(observation).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        trajectory.append(observation)
        recent.append((observation, loss.detach()))
        del observation, loss
    source = np.ones(50_000)
    of_numpy = torch.from_numpy(source)
    of_torch = torch.ones(60_000).numpy()
    kept = torch.arange(70_000)[:3].detach()
    moved = torch.ones(80_000).share_memory_()
    ready()
    return of_numpy, of_torch, kept, moved

train()
"""


@pytest.fixture(scope="module")
def torch_loop(tmp_path_factory: pytest.TempPathFactory) -> Answer:
    with Target(TORCH, tmp_path_factory.mktemp("torch")) as target:
        answer = target.ask()
        target.end()
    return answer


def test_a_plain_torch_loop(torch_loop: Answer) -> None:
    answer = torch_loop
    assert answer.nbytes("train().agent.actor.0.weight") == 600 * 32 * FLOAT
    assert answer.nbytes("train().agent.actor.0.weight grad") == 600 * 32 * FLOAT
    assert answer.nbytes("train().agent.mean") == 30_000 * FLOAT
    all_parameters = (600 * 32 + 600 + 2 * 600 + 2) * FLOAT
    assert answer.nbytes("train().optimizer exp_avg") == all_parameters
    trajectory = answer.arrays["train().trajectory[*]"]
    assert (trajectory["count"], trajectory["nbytes"]) == (100, 100 * 4 * 32 * FLOAT)
    assert answer.nbytes("train().recent[*][*]") == 50 * FLOAT  # only what is not seen before


def test_numpy_and_torch_over_one_memory_are_one(torch_loop: Answer) -> None:
    answer = torch_loop
    (one,) = [h for h in ("train().source", "train().of_numpy") if h in answer.arrays]
    assert answer.nbytes(one) == 50_000 * 8 and answer.arrays[one]["views"] == 1
    assert answer.nbytes("train().of_torch") == 60_000 * FLOAT
    kept = answer.arrays["train().kept"]
    assert kept["nbytes"] == 70_000 * 8, "a slice keeps its whole storage"
    assert answer.arrays["train().moved"]["memory"] == "shared"


BUSY = """
import numpy as np
import random
random.seed(1)
rng = np.random.default_rng(2)
np.random.seed(3)
history, total = [], 0.0
print("ready", flush=True)
for step in range({steps}):
    history.append(rng.standard_normal(64))
    total += float(history[-1].sum()) + random.random() + float(np.random.rand())
    if len(history) > 300:
        history = history[-100:]
print(repr(total))
"""


def test_questions_change_nothing(tmp_path: Path) -> None:
    """As many questions as there is time for, each a whole walk, while a seeded loop is busy."""
    script = BUSY.format(steps=200_000)
    file = tmp_path / "alone.py"
    file.write_text(script)
    alone = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, check=True, timeout=SECONDS
    )
    answers = 0
    with Target(script, tmp_path) as target:
        while target.process.poll() is None:
            answers += asked(target.pid, duplicates=answers % 2 == 0) is not None
        out, err = target.process.communicate(timeout=SECONDS)
    assert target.process.returncode == 0 and err == ""
    assert alone.stdout.split() == ["ready", out.strip()]
    assert answers >= 3


HALF_MADE = """
import time
def slow(numbers):
    for number in numbers:
        time.sleep(0.0003)
        yield [number]
print("ready", flush=True)
until, made = time.monotonic() + 6, 0
while time.monotonic() < until:
    made += len(tuple(slow(range(300)))) + (lambda *given: len(given))(*slow(range(50)))
print("well")
"""


def test_tuples_that_are_being_made_are_left_alone(tmp_path: Path) -> None:
    """C code that fills a tuple fails if anyone else has a reference to it."""
    answers = 0
    with Target(HALF_MADE, tmp_path) as target:
        while target.process.poll() is None:
            answers += asked(target.pid) is not None
        out, err = target.process.communicate(timeout=SECONDS)
    assert (out.strip(), err) == ("well", "")
    assert answers >= 3


def pythons() -> list[str]:
    """Other Pythons of this machine, where there are some."""
    roots = [Path("/usr/bin"), *Path.home().glob(".pyenv/versions/*/bin")]
    found = {p.resolve() for root in roots for p in root.glob("python[23].[0-9]*")}
    return sorted(str(p) for p in found if p.suffix[1:].isdigit() and os.access(p, os.X_OK))


@pytest.mark.parametrize("python", pythons(), ids=lambda p: p.rsplit("/", 1)[-1])
def test_other_pythons_below_run_all_the_same(python: str, tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(
        "import sys\nheld = [bytearray(200000)]\nprint('.'.join(map(str, sys.version_info[:2])))\n"
        "sys.stdout.flush()\nsys.stdin.readline()\n"
    )
    with subprocess.Popen(
        [python, str(file)],
        env=launch.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        version = tuple(int(part) for part in process.stdout.readline().split("."))
        answer = asked(process.pid, duplicates=True)
        _, err = process.communicate("\n", timeout=SECONDS)
    assert (process.returncode, err) == (0, "")
    if version < (3, 11):
        assert answer is None
    else:
        assert answer is not None
        assert any(row["holder"] == "held" for row in answer["python"])
