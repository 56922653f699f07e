"""Loops in the child: tried until enough was seen; a library's training wins."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from memfit.child.loop_trial import _filled
from memfit.measure.children import sandbox
from memfit.model.job import Answer, Job, Look, Status, TargetKind
from memfit.model.trial import TrialArrays, TrialEnd

pytestmark = pytest.mark.torch

ENV = """
import numpy as np
class Env:
    observation_space = action_space = None
    def reset(self):
        return np.zeros(8, np.float32)
    def step(self, action):
        return np.zeros(8, np.float32), 1.0, False, {}
env = Env()
env.reset()
"""
LOOP = f"""{ENV}
import torch
NUM_STEPS = 32
obs = torch.zeros(NUM_STEPS, 100_000)
net = torch.nn.Linear(100_000, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    for step in range(NUM_STEPS):
        env.step(0)
        obs[step] = 1
    for _ in range(2):
        net(obs).sum().backward()
        optimizer.step()
"""
WAITS = """
import multiprocessing
import torch
def train(network):
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    while True:
        network(torch.zeros(1, 8)).sum().backward()
        optimizer.step()
if __name__ == "__main__":
    network = torch.nn.Linear(8, 2).share_memory()
    process = multiprocessing.get_context("fork").Process(target=train, args=(network,))
    process.start()
    process.join()
"""
SB3 = f"""{ENV}
for _ in range(10):
    env.step(0)
from stable_baselines3 import PPO
model = PPO("MlpPolicy", "CartPole-v1", n_steps=32, batch_size=32, n_epochs=1, device="cpu")
import torch
for _ in range(300):
    env.step(0)
    model.policy.optimizer.step()
model.learn(64)
"""


def job(folder: Path, text: str) -> Job:
    file = folder / "train.py"
    file.write_text(text)
    return Job(kind=TargetKind.SCRIPT, target=str(file))


def ended(asked: Job, *, timeout: float = 90) -> Answer:
    return sandbox.run(asked, timeout=timeout, memory=2**31).answer


def test_a_loop_is_tried_and_its_variables_are_told(tmp_path: Path) -> None:
    answer = ended(job(tmp_path, LOOP))
    assert answer.status is Status.SURVEYED
    assert answer.spec is not None and answer.readings is not None
    trial = answer.readings.trial
    assert trial is not None and trial.ended in (TrialEnd.SEEN, TrialEnd.WHOLE)
    assert trial.first_update == 32 and trial.cycles >= 2
    rows = {array.name: array for array in answer.spec.arrays}
    assert rows["obs"].shape == ("NUM_STEPS", 100_000)
    assert rows["net.parameters"].kind == "parameters"
    assert trial.peaks["update"] >= trial.built


def test_its_settings_get_other_values(tmp_path: Path) -> None:
    asked = replace(job(tmp_path, LOOP), rewrite=True)
    answer = ended(replace(asked, short=True, knobs={"NUM_STEPS": 16, "NUM_MORE": 16}))
    assert answer.spec is not None and answer.spec.settings == {"NUM_STEPS": 16}
    assert ended(replace(asked, knobs={"NUM_MORE": 16})).status is Status.NO_SETTING


def test_a_notebook_is_tried_as_a_script_is(tmp_path: Path) -> None:
    file = tmp_path / "train.ipynb"
    cells = [{"cell_type": "code", "source": part} for part in LOOP.split("\nnet")]
    cells[1]["source"] = f"%time\nnet{cells[1]['source']}"
    file.write_text(json.dumps({"cells": cells[:2]}))
    answer = ended(Job(kind=TargetKind.NOTEBOOK, target=str(file)))
    assert answer.status is Status.SURVEYED and answer.spec is not None
    assert "obs" in {array.name for array in answer.spec.arrays}


def test_a_training_of_a_library_wins(tmp_path: Path) -> None:
    answer = ended(job(tmp_path, SB3))
    assert answer.status is Status.SURVEYED
    assert answer.spec is not None and answer.spec.library == "stable-baselines3"


def test_a_loop_is_no_training_to_pass_over(tmp_path: Path) -> None:
    for other in (
        replace(job(tmp_path, LOOP), skip=1),
        replace(job(tmp_path, LOOP), look=Look.AFTER),
    ):
        assert ended(other).status is Status.NEVER_LEARNED


def test_how_far_a_script_came_is_told(tmp_path: Path) -> None:
    endless = f"{ENV}\nwhile True:\n    env.step(0)"
    answer = ended(job(tmp_path, endless), timeout=6)
    assert answer.status is Status.TIMED_OUT
    assert answer.progress is not None and answer.progress.env_steps > 0
    answer = ended(job(tmp_path, f"{ENV}\nenv.step(0)\n1 // 0"))
    assert answer.status is Status.TARGET_FAILED
    assert answer.progress is not None and answer.progress.env_steps == 1


def test_a_script_that_has_nothing_to_update_goes_by_the_turns_of_its_loop(tmp_path: Path) -> None:
    """As an evolution strategy does: each turn draws anew while the old one is still there."""
    text = f"""{ENV}
def evolve():
    for generation in range(400):
        noise = np.random.default_rng(0).random((32, 65_536))
        for member in range(32):
            env.step(0)
evolve()
"""
    answer = ended(job(tmp_path, text))
    assert answer.status is Status.SURVEYED
    assert answer.spec is not None and answer.readings is not None
    trial = answer.readings.trial
    assert trial is not None and not trial.updates and trial.cycles > 2
    assert trial.peaks["rollout"] - trial.built > 0.9 * 32 * 65_536 * 8  # one was built
    assert "noise" in {array.name for array in answer.spec.arrays}
    assert any("no step of an optimizer" in note for note in answer.spec.notes)


def test_a_hand_made_update_is_one(tmp_path: Path) -> None:
    text = f"""{ENV}
import torch
weights = torch.zeros(100_000, requires_grad=True)
for _ in range(40):
    for _ in range(8):
        env.step(0)
    (weights ** 2).sum().backward()
    with torch.no_grad():
        weights -= 0.1 * weights.grad
"""
    answer = ended(job(tmp_path, text))
    assert answer.readings is not None and answer.readings.trial is not None
    assert answer.readings.trial.first_update == 8


def test_a_compiled_program_of_the_whole_training(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    text = """
import jax
def train(key):
    def update(weights, _):
        batch = jax.random.normal(key, (2000, 4000))
        loss = lambda w: ((batch @ w) ** 2).mean()
        return weights - 0.1 * jax.grad(loss)(weights), weights.sum()
    return jax.lax.scan(update, jax.numpy.ones((4000, 64)), None, 100_000)
_, sums = jax.block_until_ready(jax.jit(train)(jax.random.PRNGKey(0)))
"""
    answer = ended(job(tmp_path, text))
    assert answer.status is Status.SURVEYED
    assert answer.spec is not None and answer.spec.library == "jax"
    assert answer.readings is not None and answer.readings.trial is not None
    trial = answer.readings.trial
    assert trial.ended is TrialEnd.SEEN and trial.whole and trial.updates == 1
    assert trial.peaks["update"] - trial.built > 2000 * 4000 * 4


def test_a_list_that_is_never_emptied_is_projected(tmp_path: Path) -> None:
    text = LOOP.replace(
        "    for _ in range(2):", "    kept.append(obs.clone())\n    for _ in range(2):"
    )
    text = text.replace("for _ in range(3):", "kept = []\nfor turn in range(400):")
    text = text.replace("100_000", "1_000")
    answer = ended(job(tmp_path, text))
    assert answer.spec is not None
    rows = {array.name: array for array in answer.spec.arrays}
    assert rows["kept[*]"].shape == (400, 32 * 1000 * 4)


def test_settings_of_a_package_get_other_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "knobbed"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "sizes.py").write_text("NUM_STEPS = 32\n")
    text = LOOP.replace("NUM_STEPS = 32", "from knobbed.sizes import NUM_STEPS")
    (package / "__main__.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    asked = Job(kind=TargetKind.MODULE, target="knobbed", rewrite=True, short=True)
    answer = ended(replace(asked, knobs={"NUM_STEPS": 16}))
    assert answer.spec is not None and answer.spec.settings == {"NUM_STEPS": 16}
    assert {a.name: a.shape for a in answer.spec.arrays}["obs"] == ("NUM_STEPS", 100_000)


def test_settings_of_a_notebook_get_other_values(tmp_path: Path) -> None:
    file = tmp_path / "train.ipynb"
    file.write_text(json.dumps({"cells": [{"cell_type": "code", "source": LOOP}]}))
    asked = Job(kind=TargetKind.NOTEBOOK, target=str(file), rewrite=True)
    answer = ended(replace(asked, knobs={"NUM_STEPS": 16}))
    assert answer.spec is not None and answer.spec.settings == {"NUM_STEPS": 16}


def test_a_script_whose_processes_train_is_planned_by_what_all_take(tmp_path: Path) -> None:
    answer = ended(job(tmp_path, WAITS))
    assert answer.status is Status.SURVEYED
    assert answer.spec is not None and answer.readings is not None
    trial = answer.readings.trial
    assert trial is not None and trial.elsewhere and not trial.updates
    assert any("only waited for processes" in note for note in answer.spec.notes)
    assert [group.name for group in answer.readings.others] == ["forks"]


def test_a_buffer_of_a_function_that_has_ended_is_told_as_full_as_it_was() -> None:
    buffer = TrialArrays(path="main().obses", bytes=10 * 2**20, resident=2 * 2**20)
    assert _filled(buffer, 1.5).resident == 3 * 2**20
    assert _filled(buffer, 9.0).resident == 10 * 2**20
    whole = replace(buffer, resident=buffer.bytes)
    assert _filled(whole, 1.5) == whole
    queue = replace(buffer, elements=100, capacity=120, count=100)
    assert _filled(queue, 1.5).elements == 120
