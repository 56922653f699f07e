"""Bytes that a forward pass saves for backward, traced without memory by fake tensors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from memfit.model import Slope
from memfit.model.training import Driven


def saved_activations(training: Driven, samples: int) -> Slope | None:
    """What one forward pass saves, as a line in its samples.

    None where a network does something that only real data can answer.
    """
    low = max(1, samples // 2)
    high = max(samples, low + 1)
    try:
        return Slope.through(low, high, _saved_bytes(training, low), _saved_bytes(training, high))
    except Exception:  # noqa: BLE001 - a network may do anything in its forward pass
        return None


def _saved_bytes(training: Driven, samples: int) -> int:
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    own = {t.untyped_storage()._cdata for t in training.tensors()}
    saved: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in own:
            saved[storage._cdata] = storage.nbytes()
        return tensor

    with (
        _without_validation(),
        FakeTensorMode(allow_non_fake_inputs=True),
        torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t),
    ):
        held = training.forward(samples)
    del held
    return sum(saved.values())


@contextmanager
def _without_validation() -> Iterator[None]:
    """Distributions look at their values, which fake tensors do not have."""
    from torch.distributions import Distribution

    validate = Distribution._validate_args
    Distribution.set_default_validate_args(False)
    try:
        yield
    finally:
        Distribution.set_default_validate_args(validate)
