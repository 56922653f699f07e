"""What most driven trainings have in common: a base class for a library's own."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from memfit.formulas.array_bytes import sizes
from memfit.model import NetworkSpec
from memfit.model.training import Driven, Sizes, Work


class DrivenTraining(Driven, Protocol):
    """A driven training whose sizes follow from its facts."""

    def sizes(self, knobs: Mapping[str, int]) -> Sizes:
        spec = self.facts()
        return sizes(spec, {**spec.knobs, **knobs})


def state_tensors(optimizer: Any) -> Iterator[Any]:
    """The tensors that an optimizer keeps from one step to the next."""
    for state in optimizer.state.values():
        yield from (value for value in state.values() if hasattr(value, "untyped_storage"))


def state_bytes(optimizer: Any) -> int:
    """What an optimizer holds; before its first step, what its kind will hold."""
    held = sum(int(tensor.nbytes) for tensor in state_tensors(optimizer))
    if held:
        return held
    parameters = sum(p.nbytes for group in optimizer.param_groups for p in group["params"])
    defaults = optimizer.defaults
    if "betas" in defaults:
        copies = 3 if defaults.get("amsgrad") else 2
    elif "alpha" in defaults:  # RMSprop
        copies = 1 + bool(defaults.get("momentum")) + bool(defaults.get("centered"))
    else:
        copies = int(bool(defaults.get("momentum")))
    return int(parameters) * copies


def tensors_of(module: Any) -> list[Any]:
    """A module's parameters and buffers, each once."""
    return list({id(t): t for t in (*module.parameters(), *module.buffers())}.values())


def networks_of(
    tensors: Iterable[Any], optimizers: Iterable[Any], *, trained: str, others: str
) -> Iterator[NetworkSpec]:
    """A run's networks: the tensors that its optimizers train, and those that only follow them."""
    optimizers = list(optimizers)
    known = {id(p) for o in optimizers for group in o.param_groups for p in group["params"]}
    own: list[Any] = []
    following: list[Any] = []
    for tensor in tensors:
        (own if id(tensor) in known else following).append(tensor)
    yield NetworkSpec(
        name=trained,
        parameter_bytes=sum(t.nbytes for t in own),
        gradient_bytes=sum(t.nbytes for t in own if t.requires_grad),
        optimizer="+".join(sorted({type(o).__name__ for o in optimizers})),
        optimizer_bytes=sum(state_bytes(o) for o in optimizers),
    )
    if following:
        yield NetworkSpec(
            name=others,
            parameter_bytes=sum(t.nbytes for t in following),
            gradient_bytes=0,
        )


def repeat_rows(arrays: Iterable[Any], filled: int, rows: int) -> None:
    """Write rows `filled` to `rows` with copies of the filled ones: their pages become resident."""
    for array in arrays:
        for start in range(filled, rows, filled):
            stop = min(start + filled, rows)
            array[start:stop] = array[: stop - start]


def few(minibatches: Iterator[Any], work: Work) -> Iterator[Any]:
    """The first minibatches, fewer where time runs out; none is held here."""
    for _ in range(work.minibatches):
        for minibatch in itertools.islice(minibatches, 1):
            yield minibatch
            del minibatch
        if time.perf_counter() > work.deadline:
            return


@contextmanager
def changed(thing: Any, **values: Any) -> Iterator[None]:
    """An object that has other attributes for a while."""
    kept = {name: vars(thing)[name] for name in values if name in vars(thing)}
    vars(thing).update(values)
    try:
        yield
    finally:
        for name in values:
            del vars(thing)[name]
        vars(thing).update(kept)


def version_of(name: str) -> str:
    """The version of a library that is loaded."""
    return str(getattr(sys.modules.get(name), "__version__", ""))
