"""Accumulated gradients, against one backward pass of the whole batch."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from memfit.dropins import accumulate, fit_micro_batch, micro_batches
from memfit.errors import Unsupported, UsageError

Pair = namedtuple("Pair", ["x", "y"])
STRUCTURES = {
    "tuple": lambda x, y: (x, y),
    "list": lambda x, y: [x, y],
    "dict": lambda x, y: {"x": x, "y": {"target": y, "none": None}},
    "named": Pair,
}


def parts(batch: Any) -> tuple[torch.Tensor, torch.Tensor]:
    if isinstance(batch, dict):
        assert batch["y"]["none"] is None
        return batch["x"], batch["y"]["target"]
    return batch[0], batch[1]


def problem(samples: int, structure: str) -> tuple[torch.nn.Module, Any]:
    torch.manual_seed(samples)
    network = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 2))
    x, y = torch.randn(samples, 5), torch.randn(samples, 2)
    return network.double(), STRUCTURES[structure](x.double(), y.double())


def gradients(network: torch.nn.Module) -> torch.Tensor:
    return torch.cat([p.grad.flatten() for p in network.parameters() if p.grad is not None])


@settings(deadline=None)
@given(
    samples=st.integers(1, 40),
    size=st.integers(1, 50),
    structure=st.sampled_from(sorted(STRUCTURES)),
    reduction=st.sampled_from(["mean", "sum"]),
)
def test_the_gradient_is_that_of_the_whole_batch(
    samples: int, size: int, structure: str, reduction: str
) -> None:
    network, batch = problem(samples, structure)
    most = 0

    def loss_of(part: Any) -> torch.Tensor:
        nonlocal most
        x, y = parts(part)
        most = max(most, len(x))
        return torch.nn.functional.mse_loss(network(x), y, reduction=reduction)

    whole = loss_of(batch)
    whole.backward()
    wanted = gradients(network)
    network.zero_grad()
    most = 0
    loss = accumulate(loss_of, batch, size, reduction=reduction)
    assert most == min(size, samples)
    assert not loss.requires_grad
    torch.testing.assert_close(loss, whole.detach(), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(gradients(network), wanted, rtol=1e-12, atol=1e-12)


def test_gradients_add_up_as_backward_does() -> None:
    network, batch = problem(10, "tuple")

    def loss_of(part: Any) -> torch.Tensor:
        loss: torch.Tensor = (network(part[0]) - part[1]).square().mean()
        return loss

    accumulate(loss_of, batch, 3)
    once = gradients(network)
    accumulate(loss_of, batch, 3)
    torch.testing.assert_close(gradients(network), 2 * once)


def test_numbers_for_a_log_are_those_of_the_batch() -> None:
    network, batch = problem(11, "tuple")

    def loss_of(part: Any) -> Any:
        out = network(part[0])
        return out.square().mean(), {"far": (out > 0.1).double().mean(), "one": 1.0}

    wanted, numbers = loss_of(batch)
    loss, found = accumulate(loss_of, batch, 4)
    torch.testing.assert_close(loss, wanted.detach())
    torch.testing.assert_close(found["far"], numbers["far"])
    assert found["one"] == pytest.approx(1.0)


def test_pieces_are_views_and_shares_sum_to_one() -> None:
    batch: dict[str, Any] = {"pixels": torch.arange(20).reshape(10, 2), "numbers": np.arange(10)}
    pieces = list(micro_batches(batch, 4))
    assert [len(piece.data["numbers"]) for piece in pieces] == [4, 4, 2]
    assert sum(piece.share for piece in pieces) == pytest.approx(1.0)
    assert pieces[1].data["pixels"].data_ptr() == batch["pixels"][4:].data_ptr()
    assert np.shares_memory(pieces[2].data["numbers"], batch["numbers"])


@pytest.mark.parametrize("size", [0, -3, 1.5, None, True])
def test_a_size_that_is_none_is_refused(size: Any) -> None:
    with pytest.raises(UsageError, match="give 1 or more"):
        list(micro_batches(torch.zeros(3), size))


@pytest.mark.parametrize(
    ("batch", "match"),
    [
        ((torch.zeros(3), torch.zeros(4)), "same number of samples"),
        (torch.zeros(0, 2), "at least one sample"),
        ({}, "at least one tensor"),
        (None, "at least one tensor"),
        (torch.tensor(1.0), "first axis"),
        ("text", "first axis"),
    ],
)
def test_a_batch_without_samples_is_refused(batch: Any, match: str) -> None:
    with pytest.raises(UsageError, match=match):
        accumulate(lambda part: torch.zeros(()), batch, 2)


def test_a_loss_that_is_no_number_is_refused() -> None:
    ones = torch.ones(4, requires_grad=True)
    with pytest.raises(UsageError, match=r"\.mean\(\)"):
        accumulate(lambda part: part * 2, ones, 2)
    with pytest.raises(UsageError, match=r"\.mean\(\)"):
        accumulate(lambda part: 3.0, ones, 2)
    with pytest.raises(UsageError, match="name: number"):
        accumulate(lambda part: (part.mean(), 4), ones, 2)
    with pytest.raises(UsageError, match="not known"):
        accumulate(lambda part: part.mean(), ones, 2, reduction="max")


def test_a_micro_batch_is_fitted_to_a_limit() -> None:
    network, batch = problem(40, "tuple")
    dropping = torch.nn.Dropout(0.5)

    def loss_of(part: Any) -> torch.Tensor:
        loss: torch.Tensor = dropping(network(part[0]) - part[1]).square().mean()
        return loss

    before = torch.get_rng_state()
    assert fit_micro_batch(loss_of, batch, "1TiB", modules=[network]) == 40
    assert torch.equal(before, torch.get_rng_state())
    assert all(p.grad is None for p in network.parameters())
    with pytest.raises(UsageError, match="not even one sample"):
        fit_micro_batch(loss_of, batch, 1000, modules=[network])


def test_a_limit_for_a_device_is_refused() -> None:
    with pytest.raises(Unsupported, match="give micro_batch_size"):
        fit_micro_batch(
            lambda part: part.mean(),
            torch.zeros(3),
            "1GiB",
            modules=[torch.nn.Linear(2, 2, device="meta")],
        )
