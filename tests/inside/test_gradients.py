"""Gradients are found in memory, and those that go meanwhile do no harm."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from memfit.inside.gradients import Gradients


@pytest.fixture
def gradients() -> Gradients:
    return Gradients(torch)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_place_of_a_gradient_is_what_torch_says(
    gradients: Gradients, dtype: torch.dtype
) -> None:
    network = torch.nn.Sequential(torch.nn.Linear(9, 31), torch.nn.Linear(31, 5)).to(dtype)
    assert all(gradients.of(p._cdata) is None for p in network.parameters())
    network(torch.ones(3, 9, dtype=dtype)).sum().backward()
    for p in network.parameters():
        assert p.grad is not None
        storage = p.grad.untyped_storage()
        assert gradients.of(p._cdata) == (storage.data_ptr(), storage.nbytes())
    network.zero_grad(set_to_none=True)
    assert all(gradients.of(p._cdata) is None for p in network.parameters())


def test_tensors_of_this_torch_are_owned_by_their_python_objects(gradients: Gradients) -> None:
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    assert gradients.python_owns_tensors == (version >= (2, 10))


def test_without_torch_there_are_none() -> None:
    tensor = torch.ones(9, requires_grad=True)
    tensor.sum().backward()
    assert Gradients(None).of(tensor._cdata) is None


def test_what_is_no_tensor_has_none(gradients: Gradients) -> None:
    for address in (0, 8, 2**47, 2**63, 2**64 - 8, id(gradients)):
        assert gradients.of(address) is None


ASKED_WHILE_THEY_GO = """
import threading, time, torch
from memfit.inside.array_blocks import torch_quiet
from memfit.inside.pace import Pace
from memfit.inside.walk_phases import WholeWalk

torch.set_num_threads(1)
network = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(8)])
asked, over = 0, False

def ask():
    global asked
    walk = WholeWalk(Pace(lambda: False))
    with torch_quiet():
        while not over:
            for p in network.parameters():
                walk.blocks.tensor(p, walk.tree.top("network"))
            asked += 1

thread = threading.Thread(target=ask)
thread.start()
end = time.monotonic() + 4
while time.monotonic() < end or asked <= 100:  # on a busy machine, that takes longer
    network(torch.ones(4, 256)).sum().backward()
    for p in network.parameters():
        p.grad.sum()  # so that Python knows it
        p.grad = None
over = True
thread.join()
print("well", flush=True)
"""


@pytest.mark.timeout(120)
def test_gradients_may_go_while_they_are_asked_for() -> None:
    """torch frees a gradient before it forgets it, and lets other threads run meanwhile."""
    done = subprocess.run(
        [sys.executable, "-c", ASKED_WHILE_THEY_GO],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "well", "")
