"""What a launcher starts is started in the plan: each with its rank, and they meet."""

from __future__ import annotations

from pathlib import Path

import pytest

from memfit.measure.children import sandbox
from memfit.model.job import Job, Status, TargetKind

MIB = 2**20
# Equal processes that each hold 64 MiB, and learn together.
TOGETHER = """
import os, torch
import torch.distributed as dist
dist.init_process_group("gloo")
assert dist.get_world_size() == int(os.environ["LOCAL_WORLD_SIZE"]) == {ranks}
held = torch.ones(16 * 2**20)
layer = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(layer.parameters())
class Env:
    action_space = None
    def step(self, action):
        return 0
env = Env()
for _ in range(200):
    env.step(0)
    layer(torch.ones(1, 4)).sum().backward()
    dist.all_reduce(layer.weight.grad)
    optimizer.step()
"""


def run(folder: Path, text: str, ranks: int) -> sandbox.Ended:
    file = folder / "train.py"
    file.write_text(text)
    job = Job(kind=TargetKind.SCRIPT, target=str(file), ranks=ranks, trial_seconds=60)
    return sandbox.run(job, timeout=90, memory=2**32)


@pytest.mark.torch
def test_all_of_a_launchers_processes_are_counted(tmp_path: Path) -> None:
    ended = run(tmp_path, TOGETHER.format(ranks=2), 2)
    assert ended.answer.status is Status.SURVEYED, ended.output
    readings = ended.answer.readings
    assert readings is not None
    others = {group.name: group for group in readings.others}
    assert others.keys() >= {"ranks", "launcher"}
    assert others["ranks"].count == 1
    assert others["ranks"].private_bytes > 64 * MIB


def test_a_failure_is_the_first_processs_own(tmp_path: Path) -> None:
    ended = run(tmp_path, "import os\nraise ValueError('rank ' + os.environ['RANK'])", 3)
    assert ended.answer.status is Status.TARGET_FAILED
    assert "ValueError: rank 0" in ended.answer.output
