"""Trials of programs with the shapes of RL libraries, which are too large to be installed here.

As TorchRL's: a collector whose envs are stepped by another process, and a replay that is mapped
from a file. As rsl_rl's: an env of tensors without `reset`, stepped by a runner of a library whose
classes look at the frames that make them, as Tianshou's do.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from memfit.measure.children import sandbox
from memfit.model.job import Answer, Job, Status, TargetKind
from memfit.model.trial import TrialReading

pytestmark = pytest.mark.torch

COLLECTORS = """
import multiprocessing
import numpy as np

def work(pipe, frames, size):
    while pipe.recv():
        pipe.send(np.ones((frames, size), np.float32))

class Collector:
    def __init__(self, frames, size, total):
        self.requested_frames_per_batch, self.batches = frames, total // frames
        context = multiprocessing.get_context("fork")
        self.pipe, other = context.Pipe()
        context.Process(target=work, args=(other, frames, size), daemon=True).start()

    def update_policy_weights_(self): ...

    def iterator(self):
        for _ in range(self.batches):
            self.pipe.send(True)
            yield self.pipe.recv()

    def __iter__(self):
        return self.iterator()

class Storage:
    def __init__(self, file, rows, size):
        self._tensordict = {"seen": np.memmap(file, np.float32, "w+", shape=(rows, size))}
        self.filled = 0

    def extend(self, batch):
        self._tensordict["seen"][self.filled : self.filled + len(batch)] = batch
        self.filled += len(batch)
"""
COLLECTING = """
import argparse, tempfile
import torch
from collectors import Collector, Storage
parser = argparse.ArgumentParser()
parser.add_argument("--buffer-size", type=int, default=4000)
parser.add_argument("--total-frames", type=int, default=2000)
args = parser.parse_args()
rb = Storage(tempfile.mkdtemp() + "/seen", args.buffer_size, 4096)
net = torch.nn.Linear(4096, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for data in Collector(100, 4096, args.total_frames):
    rb.extend(data)
    for _ in range(4):
        net(torch.as_tensor(data)).sum().backward()
        optimizer.step()
"""
RUNNER = """
import sys
import torch

def override(method):
    assert "Algorithm" in sys._getframe(2).f_code.co_names, "not made where it stands"
    return method

class Algorithm: ...

class PPO(Algorithm):
    @override
    def __init__(self, env, steps):
        self.storage = torch.zeros(steps, env.num_envs, 64)
        self.net = torch.nn.Linear(64, 2)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

class Runner:
    def __init__(self, env, steps):
        self.env, self.alg = env, PPO(env, steps)

    def learn(self, iterations):
        for _ in range(iterations):
            for seen in self.alg.storage:
                seen[:] = self.env.step(None)
            for _ in range(4):
                self.alg.net(self.alg.storage).sum().backward()
                self.alg.optimizer.step()
"""
RUNNING = """
import torch
from runner import Runner
NUM_ENVS = 1024
NUM_STEPS = 24

class Robots:
    num_envs = NUM_ENVS
    def get_observations(self):
        return torch.ones(NUM_ENVS, 64)
    def step(self, actions):
        return self.get_observations()

runner = Runner(Robots(), NUM_STEPS)
runner.learn(5)
"""


def tried(folder: Path, text: str) -> tuple[Answer, TrialReading]:
    file = folder / "train.py"
    file.write_text(text)
    asked = Job(kind=TargetKind.SCRIPT, target=str(file))
    answer = sandbox.run(asked, timeout=90, memory=2**31).answer
    assert answer.status is Status.SURVEYED, answer
    assert answer.readings is not None and answer.readings.trial is not None
    return answer, answer.readings.trial


def test_a_collector_with_a_process_and_a_mapped_replay(tmp_path: Path) -> None:
    (tmp_path / "collectors.py").write_text(COLLECTORS)
    answer, trial = tried(tmp_path, COLLECTING)
    assert trial.cycles >= 2 and trial.env_steps >= 200 and trial.env_steps % 100 == 0
    assert answer.readings is not None and answer.spec is not None
    assert [(group.name, group.count) for group in answer.readings.others] == [("forks", 1)]
    replay = next(array for array in answer.spec.arrays if array.name == "rb['seen']")
    assert replay.shape == ("buffer_size", 4096)
    if trial.env_steps < 2000:  # else it was seen up to its end
        assert replay.filled == "total_frames"
    assert answer.spec.knobs["total_frames"] == 2000


def test_an_env_of_tensors_that_a_runner_steps(tmp_path: Path) -> None:
    (tmp_path / "runner.py").write_text(RUNNER)
    answer, trial = tried(tmp_path, RUNNING)
    assert trial.cycles >= 2 and trial.first_update == 24 * 1024
    assert answer.spec is not None
    rows = {array.name: array for array in answer.spec.arrays}
    assert rows["runner.alg.storage"].shape == ("NUM_STEPS", "NUM_ENVS", 64)
