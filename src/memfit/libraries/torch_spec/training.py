"""Plain torch trainings, driven: networks and arrays as described, at any size."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from memfit.errors import SpecError, one_line
from memfit.libraries.driven import DrivenTraining, state_tensors
from memfit.libraries.torch_spec.networks import (
    Network,
    call_loss,
    grouped,
    network_specs,
    output_tensors,
)
from memfit.model import RunSpec, phase_of
from memfit.model.training import FORWARD_DONE, HeldArray, Mark, Work


class TorchTraining(DrivenTraining):
    """A run of networks and arrays.

    Its networks are the user's: whatever they raise, the run itself would raise.
    """

    running_its_own = True

    def __init__(
        self,
        spec: RunSpec,
        parts: Sequence[Network],
        *,
        joint_loss: bool = False,
        described: bool = False,
    ) -> None:
        self.spec = spec
        self.parts = parts  # in the order in which they take each other's output
        self.groups = grouped(parts, joint_loss)
        self.described = described
        self.held: dict[Any, Any] = {}  # plays the part of a script's local variables
        self.arrays: dict[str, list[Any]] = {}
        self.graphs: list[Any] = []

    def facts(self) -> RunSpec:
        seen: set[int] = set()
        networks = tuple(spec for part in self.parts for spec in network_specs(part, seen))
        return replace(self.spec, networks=networks)

    def tensors(self) -> Iterator[Any]:
        for part in self.parts:
            yield from part.module.parameters()
            if part.optimizer is not None:
                yield from state_tensors(part.optimizer)

    def drop_gradients(self) -> None:
        self.held.clear()
        super().drop_gradients()

    def forward(self, samples: int) -> object:
        found = []
        for group in self.groups:
            inputs = _inputs(group, samples)
            found.append(_loss(group, inputs, _outputs(group, inputs)))
        return found

    def rollout_step(self, samples: int) -> object:
        import torch

        recording = self.spec.update.records_gradients
        acting = [p for p in self.parts if p.rollout != "none"]
        with self._refused():
            with torch.set_grad_enabled(recording):
                inputs = _inputs(acting, samples)
                self.held["rollout"] = _outputs(acting, inputs)
            self.held["rollout inputs"] = inputs
            if not recording:
                return []
            return [self.held["rollout"][p.name] for p in acting if p.rollout == "kept"]

    @contextmanager
    def _refused(self) -> Iterator[None]:
        """Whatever networks raise that a spec describes, is the spec's."""
        try:
            yield
        except Exception as error:
            if not self.described:
                raise
            raise SpecError(f"its networks do not run: {one_line(error)}") from error

    def collect(self, work: Work) -> None:
        if not work.rehearsal:
            return
        sizes = self.sizes(work.knobs)
        if not self.arrays:
            self._make(sizes.arrays, "build")
        self._make(sizes.arrays, "rollout")
        if not sizes.steps:
            return
        kept: list[Any] = []
        self.graphs.append(kept)
        kept.extend(self.rollout_step(sizes.collected) for _ in range(sizes.telling_steps))

    def _make(self, arrays: Iterable[HeldArray], phase: str) -> None:
        """Every array whose life begins in this phase, written in full."""
        import numpy as np

        for array in arrays:
            if phase_of(array.phases[0]) != phase:
                continue
            if phase != "update":  # what an update makes is there before the old one goes
                self.arrays.pop(array.name, None)
            size = array.bytes // array.pieces
            self.arrays[array.name] = [np.ones(size, np.uint8) for _ in range(array.pieces)]

    def update(self, work: Work, mark: Mark) -> None:
        if work.rehearsal:
            self._make(self.sizes(work.knobs).arrays, "update")
        for number in range(work.minibatches):
            if number and time.perf_counter() > work.deadline:
                break
            with self._refused():
                self._update_step(work.batch, mark)
        if not self.spec.update.keeps_last_graph:
            self._drop_graphs(leave=0)

    def _update_step(self, samples: int, mark: Mark) -> None:
        held = self.held
        for i, group in enumerate(self.groups):
            held["inputs", i] = _inputs(group, samples)
            optimizers = [part.optimizer for part in group if part.optimizer is not None]
            for optimizer in optimizers:
                optimizer.zero_grad()
            held["outputs", i] = _outputs(group, held["inputs", i])
            held["loss", i] = _loss(group, held["inputs", i], held["outputs", i])
            mark(FORWARD_DONE)
            self._drop_graphs(leave=1)
            if held["loss", i].requires_grad:
                held["loss", i].backward()
            for optimizer in optimizers:
                optimizer.step()

    def _drop_graphs(self, leave: int) -> None:
        while len(self.graphs) > leave:
            self.graphs.pop(0)


def _inputs(parts: Sequence[Network], samples: int) -> dict[str, Any]:
    return {p.name: p.inputs.make(samples) for p in parts if p.inputs is not None}


def _outputs(parts: Sequence[Network], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Every network's output, each after the one whose output it takes."""
    import torch

    outputs: dict[str, Any] = {}
    for part in parts:
        args, kwargs = inputs.get(part.name, ((), {}))
        if part.after:
            given = next(output_tensors(outputs[part.after]))
            args = (torch.cat([given, *args], dim=-1) if args else given,)
        outputs[part.name] = part.module(*args, **kwargs)
    return outputs


def _loss(parts: Sequence[Network], inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> Any:
    total: Any = 0
    for part in parts:
        output = outputs[part.name]
        if part.target:
            total = total + call_loss(part.loss, output, inputs[part.target][0][0])
        elif part.loss is not None or not any(p.after == part.name for p in parts):
            total = total + call_loss(part.loss, output, None)
    return total
