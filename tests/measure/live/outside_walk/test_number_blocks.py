"""Arrays and tensors of other processes are found from outside, with their holders."""

from __future__ import annotations

from pathlib import Path

import pytest

from memfit.libraries import all_roles
from memfit.measure.live.outside_walk.answer import walk_outside
from tests.inside.target import Target
from tests.measure.live.outside_walk.children import Walked, running

ARRAYS = """
import collections, mmap, sys
import numpy as np

class Buffer:
    def __init__(self):
        self.observations = np.zeros((1000, 3, 84), dtype=np.uint8)
        self.rewards = np.zeros(20_000, dtype=np.float32)[:10_000]

class Step:
    __slots__ = ("state", "reward")
    def __init__(self, i):
        self.state = np.full(100, i, dtype=np.float64)
        self.reward = 0.0

buffer = Buffer()
trajectory = [Step(i) for i in range(2000)]
frames = collections.deque([np.zeros((100, 100, 8), dtype=np.float32) for _ in range(12)])
objects = np.empty(3, dtype=object)
objects[1] = np.ones(9_000)
text = np.frombuffer(bytearray(100_000), dtype=np.uint8)
block = mmap.mmap(-1, 2**20)
mapped = np.frombuffer(block, dtype=np.uint8)

def main():
    local = np.zeros(2**17, dtype=np.complex64)
    again = buffer.observations
    print("ready", flush=True)
    sys.stdin.readline()
    return local, again

main()
"""


def test_arrays_have_their_bytes_types_and_shapes(tmp_path: Path) -> None:
    with running(ARRAYS, tmp_path) as process:
        found = Walked(process.pid)
    rows = {
        holder: (row["nbytes"], row["count"], row["dtype"], tuple(row["shape"]))
        for holder, row in found.arrays.items()
    }
    assert rows["buffer.observations"] == (252_000, 1, "uint8", (1000, 3, 84))
    assert found.arrays["buffer.observations"]["also"] == ["main().again"]
    assert rows["buffer.rewards"] == (80_000, 1, "float32", (20_000,))
    assert rows["trajectory[*].state"] == (2000 * 800, 2000, "float64", (100,))
    assert rows["frames[*]"][:3] == (12 * 320_000, 12, "float32")
    assert rows["main().local"] == (2**20, 1, "complex64", (2**17,))
    assert rows["objects[*]"][:3] == (72_000, 1, "float64")
    assert rows["block"] == (2**20, 1, "bytes", (2**20,))
    assert found.python["text"]["large_bytes"] == pytest.approx(100_000, abs=200)
    for row in found.answer["arrays"]:
        assert row["nbytes"] == sum(size for _, size in row["extents"]) + row["small_bytes"]


TORCH = """
import collections
import torch
from torch import nn

class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(32, 600), nn.Tanh(), nn.Linear(600, 600))
        self.register_buffer("mean", torch.zeros(30_000))

def train():
    agent = Agent()
    optimizer = torch.optim.Adam(agent.parameters())
    trajectory = []
    recent = collections.deque(maxlen=50)
    for step in range(60):
        observation = torch.randn(4, 32)
        loss = agent.actor(observation).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        trajectory.append(observation)
        recent.append((observation, loss.detach()))
        del observation, loss
    view = torch.arange(70_000)[:3].detach()
    kept = agent.actor(torch.randn(1000, 32)).sum()
    ready()
    return view, kept

train()
"""


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Walked, dict[str, int]]:
    """What a walk from outside finds, and what the process itself tells."""
    with Target(TORCH, tmp_path_factory.mktemp("torch")) as target:
        told = target.ask()
        walked = Walked(target.pid, all_roles())
    return walked, {holder: row["nbytes"] for holder, row in told.arrays.items()}


@pytest.mark.torch
def test_tensors_have_the_holders_that_the_process_tells(
    both: tuple[Walked, dict[str, int]],
) -> None:
    walked, told = both
    found = {holder: row["nbytes"] for holder, row in walked.arrays.items()}
    own = {holder: nbytes for holder, nbytes in told.items() if holder.startswith("train()")}
    assert len(own) >= 12
    assert {holder: found.get(holder) for holder in own} == own
    assert walked.arrays["train().agent.mean"]["shape"] == [30_000]
    assert walked.arrays["train().view"]["dtype"] == "int64"


@pytest.mark.torch
def test_a_graph_that_is_kept_is_named_by_what_keeps_it(
    both: tuple[Walked, dict[str, int]],
) -> None:
    row = both[0].arrays["train().kept graph"]
    # The input, what the first layer gives, and what the tanh makes of it that is kept twice.
    assert row["nbytes"] == 4 * (1000 * 32 + 1000 * 600)
    assert row["library"] == "torch"


SMALL_TENSORS = """
import sys
import torch

def resident():
    with open("/proc/self/statm") as file:
        return 4096 * int(file.read().split()[1])

first = [torch.full((7,), 1.0) for _ in range(2000)]
before = resident()
kept = [torch.full((7,), 1.0) for _ in range(20_000)]
grown = resident() - before
print("ready", flush=True)
print(grown, flush=True)
sys.stdin.readline()
"""


@pytest.mark.torch
def test_small_tensors_count_with_all_that_malloc_gives_for_them(tmp_path: Path) -> None:
    with running(SMALL_TENSORS, tmp_path) as process:
        assert process.stdout is not None
        grown = int(process.stdout.readline())
        answer = walk_outside(process.pid, seconds=60, roles={}, variables_only=True)
    rows = [*answer["arrays"], *answer["python"]]
    held = sum(row["nbytes"] for row in rows if row["holder"].partition("[")[0] == "kept")
    assert held == pytest.approx(grown, rel=0.1)
