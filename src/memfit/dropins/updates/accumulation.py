"""The gradient of a large batch, taken piece by piece, for plain torch.

loss = accumulate(loss_of, batch, micro_batch_size=64)  # instead of loss_of(batch).backward()
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import torch

from memfit.dropins.updates.size import checked_size
from memfit.errors import UsageError

REDUCTIONS = ("mean", "sum")


class MicroBatch(NamedTuple):
    """A piece of a batch, and the share of the batch's samples that it holds."""

    data: Any
    share: float


def micro_batches(batch: Any, size: int) -> Iterator[MicroBatch]:
    """A batch in pieces of `size` samples, views where the batch holds tensors; the last may be
    smaller.

    A batch is a tensor or an array, or a dict, tuple, list or namedtuple of such. `None` stays.
    """
    size, count = checked_size(size), samples_in(batch)
    for begin in range(0, count, size):
        end = min(begin + size, count)
        yield MicroBatch(part_of(batch, begin, end), (end - begin) / count)


def accumulate(
    loss_of: Callable[[Any], Any],
    batch: Any,
    micro_batch_size: int,
    *,
    reduction: str = "mean",
) -> Any:
    """Add the gradient of `loss_of(batch)` to the parameters, one micro-batch at a time.

    `loss_of` gives the mean over the samples it gets, or their sum (`reduction="sum"`); it may
    also give `(loss, {name: number})` for a log. What comes back is the same for the whole batch,
    without a graph. As with `backward()`, gradients add up: zero them before, step after.
    """
    if reduction not in REDUCTIONS:
        raise UsageError(f"reduction={reduction!r} is not known: give one of {REDUCTIONS}")
    whole: torch.Tensor | None = None
    numbers: dict[str, Any] | None = None
    for data, share in micro_batches(batch, micro_batch_size):
        weight = share if reduction == "mean" else 1.0
        found = loss_of(data)
        loss, logged = found if isinstance(found, tuple) else (found, None)
        _check_loss(loss, logged)
        (loss * weight).backward()
        part = loss.detach() * weight
        whole = part if whole is None else whole + part
        if logged is not None:
            numbers = {} if numbers is None else numbers
            for name, value in logged.items():
                number = value.detach() if isinstance(value, torch.Tensor) else value
                numbers[name] = numbers.get(name, 0.0) + number * weight
    return whole if numbers is None else (whole, numbers)


def samples_in(batch: Any) -> int:
    """How many samples a batch has; all its parts must have as many."""
    counts = {len(leaf) for leaf in _leaves(batch)}
    if len(counts) != 1 or counts == {0}:
        raise UsageError(
            f"the parts of the batch have {sorted(counts)} samples on their first axis: give at "
            "least one tensor, all with the same number of samples, and at least one sample"
        )
    return counts.pop()


def part_of(batch: Any, begin: int, end: int) -> Any:
    """The samples of a batch from `begin` to before `end`, in the batch's own structure."""
    if isinstance(batch, Mapping):
        return {key: part_of(value, begin, end) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(part_of(value, begin, end) for value in batch))
    if isinstance(batch, (tuple, list)):
        return type(batch)(part_of(value, begin, end) for value in batch)
    return None if batch is None else batch[begin:end]


def _leaves(batch: Any) -> Iterator[Any]:
    if isinstance(batch, Mapping):
        batch = tuple(batch.values())
    if isinstance(batch, (tuple, list)):
        for part in batch:
            yield from _leaves(part)
    elif batch is not None:
        if not getattr(batch, "shape", ()):
            raise UsageError(
                f"a batch of {type(batch).__name__} cannot be split into samples: give tensors or "
                "arrays with samples on their first axis, or dicts, tuples and lists of them"
            )
        yield batch


def _check_loss(loss: Any, logged: Any) -> None:
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
        shape = tuple(loss.shape) if isinstance(loss, torch.Tensor) else type(loss).__name__
        raise UsageError(f"the loss is {shape}, not one number: end it with .mean() or .sum()")
    if logged is not None and not isinstance(logged, Mapping):
        raise UsageError(
            f"beside the loss came a {type(logged).__name__}: give numbers for a log as "
            "(loss, {name: number})"
        )
