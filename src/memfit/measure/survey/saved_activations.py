"""Bytes that a forward pass saves for backward, read in two small passes."""

from __future__ import annotations

from memfit.model import Slope
from memfit.model.training import Driven

_SAMPLES = 16  # what is saved is a straight line in them


def saved_activations(training: Driven, samples: int) -> Slope | None:
    """What one forward pass saves, as a line in its samples.

    None where a network does not take the inputs that its training was described with.
    """
    high = max(2, min(samples, _SAMPLES))
    low = high // 2
    try:
        return Slope.through(low, high, _saved_bytes(training, low), _saved_bytes(training, high))
    except Exception:  # noqa: BLE001 - a network may do anything in its forward pass
        return None


def _saved_bytes(training: Driven, samples: int) -> int:
    import torch

    own = {t.untyped_storage()._cdata for t in training.tensors()}
    saved: dict[int, torch.UntypedStorage] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in own:
            saved[storage._cdata] = storage
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        held = training.forward(samples)
    del held
    return sum(storage.nbytes() for storage in saved.values())
