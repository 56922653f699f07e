"""Networks of a plain torch training, which do one step of a rollout or an update at any size.

They are made from live objects (`torch_run.py`) or from the facts of a run spec
(`described_run.py`). Importing this file loads no torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memfit.libraries.driven import state_bytes, state_tensors
from memfit.model import NetworkSpec, RunSpec


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


@dataclass(kw_only=True)
class TorchNetworks:
    """The networks of a training run, in the order in which they take each other's output."""

    facts: RunSpec
    parts: Sequence[Network]
    joint_loss: bool = False
    _groups: list[list[Network]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._groups = list(_grouped(self.parts, self.joint_loss))

    # -- the steps -----------------------------------------------------------------------------

    def update(self, samples: int, held: dict[Any, Any], forward_done: Callable[[], None]) -> None:
        """One step of the update. `held` plays the part of a script's local variables."""
        for i, group in enumerate(self._groups):
            held["inputs", i] = self._inputs(group, samples)
            for part in group:
                if part.optimizer is not None:
                    part.optimizer.zero_grad()
            held["outputs", i] = self.forward(group, held["inputs", i])
            held["loss", i] = self._loss(group, held["inputs", i], held["outputs", i])
            forward_done()
            if held["loss", i].requires_grad:
                held["loss", i].backward()
            for part in group:
                if part.optimizer is not None:
                    part.optimizer.step()

    def rollout_step(self, samples: int, held: dict[Any, Any]) -> list[Any]:
        """One step of the rollout; returned is what a run keeps of it when it records gradients."""
        import torch

        recording = self.facts.update.records_gradients
        acting = [p for p in self.parts if p.rollout != "none"]
        with torch.set_grad_enabled(recording):
            inputs = self._inputs(acting, samples)
            held["rollout"] = self.forward(acting, inputs)
        held["rollout inputs"] = inputs
        if not recording:
            return []
        return [held["rollout"][p.name] for p in acting if p.rollout == "kept"]

    def loss_of(self, samples: int) -> Any:
        """Everything forward, up to the loss of each group; for tracing what backward will need."""
        found = []
        for group in self._groups:
            inputs = self._inputs(group, samples)
            found.append(self._loss(group, inputs, self.forward(group, inputs)))
        return found

    def tensors(self) -> Iterator[Any]:
        """Parameters, and what optimizers keep from one step to the next."""
        for part in self.parts:
            yield from part.module.parameters()
            if part.optimizer is not None:
                yield from state_tensors(part.optimizer)

    def _inputs(self, parts: Sequence[Network], samples: int) -> dict[str, Any]:
        return {p.name: p.inputs.make(samples) for p in parts if p.inputs is not None}

    def forward(self, parts: Sequence[Network], inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Every network's output, each after the one whose output it takes."""
        import torch

        outputs: dict[str, Any] = {}
        for part in parts:
            args, kwargs = inputs.get(part.name, ((), {}))
            if part.after:
                given = next(_tensors(outputs[part.after]))
                args = (torch.cat([given, *args], dim=-1) if args else given,)
            outputs[part.name] = part.module(*args, **kwargs)
        return outputs

    def _loss(
        self, parts: Sequence[Network], inputs: Mapping[str, Any], outputs: Mapping[str, Any]
    ) -> Any:
        total: Any = 0
        for part in parts:
            output = outputs[part.name]
            if part.target:
                total = total + _call_loss(part.loss, output, inputs[part.target][0][0])
            elif part.loss is not None or not any(p.after == part.name for p in parts):
                total = total + _call_loss(part.loss, output, None)
        return total

    # -- the facts -----------------------------------------------------------------------------

    def networks(self) -> tuple[NetworkSpec, ...]:
        """The networks as they are now: optimizers have their state after a first step."""
        seen: set[int] = set()
        return tuple(spec for part in self.parts for spec in _network_specs(part, seen))


def _grouped(parts: Sequence[Network], joint: bool) -> Iterator[list[Network]]:
    """Networks that go forward and backward together: chains, or all where the loss is one."""
    roots: dict[str, str] = {}
    groups: dict[str, list[Network]] = {}
    for part in parts:
        root = "" if joint else roots.get(part.after, part.name)
        roots[part.name] = root
        groups.setdefault(root, []).append(part)
    yield from groups.values()


def _tensors(output: Any) -> Iterator[Any]:
    if hasattr(output, "dim"):
        yield output
    elif isinstance(output, Mapping):
        for item in output.values():
            yield from _tensors(item)
    elif isinstance(output, (tuple, list)):
        for item in output:
            yield from _tensors(item)


def _call_loss(loss: Callable[..., Any] | None, output: Any, target: Any) -> Any:
    import torch

    if loss is None:
        return sum(t.float().sum() for t in _tensors(output) if t.requires_grad)
    if not isinstance(loss, torch.nn.modules.loss._Loss):
        return loss(output)
    output = next(_tensors(output))
    return loss(output, torch.rand_like(output) if target is None else target.view_as(output))


def _network_specs(part: Network, seen: set[int]) -> Iterator[NetworkSpec]:
    own = [t for t in (*part.module.parameters(), *part.module.buffers()) if id(t) not in seen]
    seen.update(id(t) for t in own)
    trained = part.optimizer is not None
    yield NetworkSpec(
        name=part.name,
        parameter_bytes=sum(t.nbytes for t in own),
        gradient_bytes=sum(t.nbytes for t in own if t.requires_grad) if trained else 0,
        optimizer=type(part.optimizer).__name__ if trained else "",
        optimizer_bytes=state_bytes(part.optimizer) if trained else 0,
        largest_tensor_bytes=max((t.nbytes for t in own), default=0),
    )
    for i, copy in enumerate(part.copies):
        size = sum(t.nbytes for t in (*copy.parameters(), *copy.buffers()))
        name = f"{part.name}.target" if len(part.copies) == 1 else f"{part.name}.target_{i + 1}"
        yield NetworkSpec(name=name, parameter_bytes=size, gradient_bytes=0)
