"""A plain torch training, given as a live module, its optimizer and the shape of a batch.

Importing this file loads no torch, so that `memfit.TorchRun` costs nothing until it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from memfit.errors import UsageError
from memfit.libraries.torch_spec.networks import Inputs, Network, Tensor
from memfit.libraries.torch_spec.training import TorchTraining
from memfit.model import ArraySpec, RunSpec, UpdateSpec

_HOW = (
    "give a shape such as (256, 1804), a shape and a dtype such as ((256, 1804), 'uint8'), "
    "or several of these in a list or, by argument name, in a dict"
)


@dataclass(frozen=True, kw_only=True)
class TorchRun:
    """A plain torch training to plan: a module, its optimizer and the shape of one batch.

    `batch` is a shape whose first axis is the batch, `(shape, dtype)`, or a list or dict of these
    for modules with several inputs. `optimizer` is an optimizer of the module's parameters, or a
    name of `torch.optim`. `loss` turns the module's output into one number; a loss of `torch.nn`
    is given a target like the output; without one, the outputs are summed.
    """

    module: Any
    batch: Any
    optimizer: Any = "Adam"
    loss: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        read_batch(self.batch)


def read_batch(batch: Any) -> Inputs:
    """What a module is called with, from the `batch` of a TorchRun."""
    named = isinstance(batch, Mapping)
    single = not named and (_is_shape(batch) or _is_pair(batch))
    items = list(batch.items()) if named else [("", b) for b in ([batch] if single else batch)]
    if not items:
        raise UsageError(f"the batch of a TorchRun is empty: {_HOW}")
    read = [(name, *_shape_and_dtype(item)) for name, item in items]
    size = read[0][1][0]
    tensors = tuple(
        Tensor(name=name, shape=shape, dtype=dtype, batched=shape[0] == size)
        for name, shape, dtype in read
    )
    return Inputs(batch=size, kwargs=tensors) if named else Inputs(batch=size, args=tensors)


def _is_shape(item: Any) -> bool:
    return isinstance(item, (tuple, list)) and bool(item) and all(type(n) is int for n in item)


def _is_pair(item: Any) -> bool:
    return (
        isinstance(item, (tuple, list))
        and len(item) == 2
        and _is_shape(item[0])
        and not isinstance(item[1], (tuple, list))
    )


def _shape_and_dtype(item: Any) -> tuple[tuple[int, ...], str]:
    if not _is_shape(item) and not _is_pair(item):
        raise UsageError(f"{item!r} is no input of a TorchRun: {_HOW}")
    shape, dtype = (item, "float32") if _is_shape(item) else item
    if any(n < 1 for n in shape):
        raise UsageError(f"the shape {tuple(shape)} has an axis below 1: {_HOW}")
    return tuple(shape), str(dtype).removeprefix("torch.")


def from_run(run: TorchRun) -> TorchTraining:
    """The training of a module, with an optimizer and a batch."""
    import torch

    inputs = read_batch(run.batch)
    tensors = (*inputs.args, *inputs.kwargs)
    name = type(run.module).__name__.lower()
    return TorchTraining(
        RunSpec(
            library="torch",
            version=str(torch.__version__),
            algorithm=type(run.module).__name__,
            policy="",
            knobs={"batch_size": inputs.batch},
            on_policy=False,
            observation=tuple(input_fact(t, i) for i, t in enumerate(tensors) if t.batched),
            update=UpdateSpec(batch="batch_size", minibatch="batch_size"),
            scale={"batch_size": inputs.batch},
            device=str(next((p.device for p in run.module.parameters()), "cpu")),
        ),
        [
            Network(
                name=name,
                module=run.module,
                inputs=inputs,
                optimizer=make_optimizer(run.optimizer, run.module),
                loss=run.loss,
            )
        ],
    )


def input_fact(tensor: Tensor, index: int) -> ArraySpec:
    import torch

    return ArraySpec(
        name=f"inputs.{tensor.name or index}",
        shape=tensor.shape[1:],
        dtype=tensor.dtype,
        itemsize=getattr(torch, tensor.dtype).itemsize,
    )


def make_optimizer(optimizer: Any, module: Any) -> Any:
    import torch

    trained = [p for p in module.parameters() if p.requires_grad]
    if not trained or optimizer in (None, "none"):
        return None
    if isinstance(optimizer, str):
        optimizer = getattr(torch.optim, optimizer)
    return optimizer(trained) if callable(optimizer) else optimizer
