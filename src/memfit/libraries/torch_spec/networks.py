"""Networks of a plain torch training: their inputs, losses and facts.

They are made from live objects (`torch_run.py`) or from the facts of a run spec
(`described_run.py`). Importing this file loads no torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memfit.libraries.driven import state_bytes
from memfit.model import NetworkSpec


@dataclass(frozen=True, kw_only=True)
class Tensor:
    """One input: its shape (the batch first, where it has one) and dtype."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    batched: bool = True

    def make(self, samples: int) -> Any:
        import torch

        shape = (samples, *self.shape[1:]) if self.batched else self.shape
        kind = getattr(torch, self.dtype)
        if kind.is_floating_point:
            return torch.rand(shape, dtype=kind)
        return torch.zeros(shape, dtype=kind)


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What a network is called with, by position and by name."""

    batch: int
    args: tuple[Tensor, ...] = ()
    kwargs: tuple[Tensor, ...] = ()

    def make(self, samples: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (
            tuple(t.make(samples) for t in self.args),
            {t.name: t.make(samples) for t in self.kwargs},
        )


@dataclass(kw_only=True)
class Network:
    """One network of a training, and its place among the others.

    `after` names the network whose output it takes, `target` the one with whose input its output
    is compared. `rollout` is "kept" (its graph outlives the step), "dropped" or "none".
    """

    name: str
    module: Any
    inputs: Inputs | None
    optimizer: Any = None
    after: str = ""
    target: str = ""
    loss: Callable[..., Any] | None = None
    rollout: str = "kept"
    copies: Sequence[Any] = ()


def grouped(parts: Sequence[Network], joint: bool) -> list[list[Network]]:
    """Networks that go forward and backward together: chains, or all where the loss is one."""
    roots: dict[str, str] = {}
    groups: dict[str, list[Network]] = {}
    for part in parts:
        root = "" if joint else roots.get(part.after, part.name)
        roots[part.name] = root
        groups.setdefault(root, []).append(part)
    return list(groups.values())


def output_tensors(output: Any) -> Iterator[Any]:
    """The tensors of what a network returns, however they are put together."""
    if hasattr(output, "dim"):
        yield output
    elif isinstance(output, Mapping):
        for item in output.values():
            yield from output_tensors(item)
    elif isinstance(output, (tuple, list)):
        for item in output:
            yield from output_tensors(item)


def call_loss(loss: Callable[..., Any] | None, output: Any, target: Any) -> Any:
    """The loss of one output; without a target, against numbers of no meaning."""
    import torch

    if loss is None:
        return sum(t.float().sum() for t in output_tensors(output) if t.requires_grad)
    if not isinstance(loss, torch.nn.modules.loss._Loss):
        return loss(output)
    output = next(output_tensors(output))
    return loss(output, torch.rand_like(output) if target is None else target.view_as(output))


def network_specs(part: Network, seen: set[int]) -> Iterator[NetworkSpec]:
    """A network and its copies as they are now; tensors that were `seen` count where they were."""
    own = [t for t in (*part.module.parameters(), *part.module.buffers()) if id(t) not in seen]
    seen.update(id(t) for t in own)
    trained = part.optimizer is not None
    yield NetworkSpec(
        name=part.name,
        parameter_bytes=sum(t.nbytes for t in own),
        gradient_bytes=sum(t.nbytes for t in own if t.requires_grad) if trained else 0,
        optimizer=type(part.optimizer).__name__ if trained else "",
        optimizer_bytes=state_bytes(part.optimizer) if trained else 0,
    )
    for i, copy in enumerate(part.copies):
        size = sum(t.nbytes for t in (*copy.parameters(), *copy.buffers()))
        name = f"{part.name}.target" if len(part.copies) == 1 else f"{part.name}.target_{i + 1}"
        yield NetworkSpec(name=name, parameter_bytes=size, gradient_bytes=0)
