"""Memory of minibatches is used again, but never while anything refers to it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch

from memfit.dropins.windows.pool import LARGE, BufferPool

BYTES = np.dtype(np.uint8)


@pytest.mark.parametrize("hold", ["array", "view", "tensor", "slice of a tensor", "graph"])
def test_memory_in_use_is_not_handed_out(hold: str) -> None:
    pool = BufferPool()
    first = pool.empty((8, 16), np.dtype(np.float32))
    first[:] = 1
    tensor = torch.as_tensor(first)
    weight = torch.ones(16, requires_grad=True)
    kept = {
        "array": first,
        "view": first[3:, ::2],
        "tensor": tensor,
        "slice of a tensor": tensor[2:],
        "graph": (tensor @ weight).sum(),
    }[hold]
    del first, tensor
    for _ in range(6):
        pool.empty((8, 16), np.dtype(np.float32))[:] = 7
    if hold == "graph":
        assert isinstance(kept, torch.Tensor)
        kept.backward()
        assert weight.grad is not None and (weight.grad == 8).all()
    else:
        assert (np.asarray(kept) == 1).all()


def test_idle_memory_is_handed_out_again() -> None:
    pool = BufferPool()
    places = {pool.empty((100,), BYTES).ctypes.data for _ in range(10)}
    assert len(places) == 1
    assert next(iter(places)) % 64 == 0
    assert pool.nbytes == 164


def test_large_memory_is_given_back() -> None:
    pool = BufferPool()
    large = pool.empty((LARGE,), BYTES)
    assert large.ctypes.data % 64 == 0
    assert pool.owns(large) and pool.owns(large[5:])
    assert pool.nbytes == 0
    assert not pool.owns(np.empty(4)) and not pool.owns(np.empty(4)[1:])


def test_many_in_use_are_no_problem() -> None:
    pool = BufferPool()
    held = [pool.empty((50,), BYTES) for _ in range(20)]
    for i, one in enumerate(held):
        one[:] = i
    assert all((one == i).all() for i, one in enumerate(held))
    assert pool.nbytes <= 4 * 114
    pool.clear()
    assert all((one == i).all() for i, one in enumerate(held))
    assert pickle.loads(pickle.dumps(pool)).nbytes == 0
