"""Build the plain torch training that a run spec describes."""

from __future__ import annotations

import copy
import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from memfit.errors import SpecError
from memfit.model import ArraySpec, RunSpec, UpdateSpec, parse_size
from memfit.sources.program import Inputs, Part, Program, Tensor
from memfit.sources.torch import input_fact, make_optimizer, versions


def from_spec(facts: Mapping[str, Any]) -> Program:
    """The program that a run spec describes; `facts` is what `memfit.sources.spec.load` gives."""
    import torch

    knobs: dict[str, int] = dict(facts["knobs"])
    if facts["update"]["threads"]:
        torch.set_num_threads(facts["update"]["threads"])
    parts = [_part(network, knobs) for network in facts["network"]]
    fixed = _settling(facts["network"], knobs)
    update = {name: _settled(value, fixed) for name, value in facts["update"].items()}
    return Program(
        facts=RunSpec(
            library="torch",
            version=str(torch.__version__),
            algorithm=facts["name"],
            policy="",
            knobs=knobs,
            on_policy=False,
            observation=tuple(
                input_fact(t, i)
                for part in parts
                if part.inputs is not None
                for i, t in enumerate(part.inputs.args)
            ),
            arrays=tuple(_array(array, fixed) for array in facts["array"]),
            update=UpdateSpec(
                batch=update["batch"],
                minibatch=update["minibatch"] or update["batch"],
                rollout=update["rollout"],
                steps=update["steps"],
                records_gradients=update["rollout_records_gradients"],
                keeps_last_graph=update["keeps_last_graph"],
            ),
            versions=versions(),
        ),
        parts=parts,
        joint_loss=update["joint_loss"],
    )


def _settling(networks: Sequence[Mapping[str, Any]], knobs: Mapping[str, int]) -> dict[str, int]:
    """The knobs that shape a network: with another value it is another network, to be surveyed."""
    words = {word for network in networks for word in _words((network["input"], network["layers"]))}
    return {name: value for name, value in knobs.items() if name in words}


def _words(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from re.findall(r"\w+", value)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _words(item)
    elif isinstance(value, Mapping):
        yield from _words(list(value.values()))


def _settled(text: Any, fixed: Mapping[str, int]) -> Any:
    """An expression with these knobs replaced by their values."""
    if not isinstance(text, str):
        return text
    return re.sub(r"\w+", lambda word: str(fixed.get(word[0], word[0])), text)


def _array(array: Mapping[str, Any], fixed: Mapping[str, int]) -> ArraySpec:
    import numpy as np

    return ArraySpec(
        name=array["name"],
        shape=tuple(_settled(n, fixed) for n in array["shape"]),
        dtype=array["dtype"],
        itemsize=np.dtype(array["dtype"]).itemsize,
        lazy=array["filled"] is not None,
        kind=array["kind"],
        phases=tuple(array["phases"]),
        filled=_settled(array["filled"], fixed),
        pieces=_settled(array["pieces"], fixed),
    )


def _part(network: Mapping[str, Any], knobs: Mapping[str, int]) -> Part:
    import torch

    if network["factory"]:
        module_name, _, name = network["factory"].partition(":")
        module = getattr(importlib.import_module(module_name), name)()
    else:
        layers = [_layer(layer, knobs) for layer in network["layers"]]
        module = torch.nn.Sequential(*layers)
    inputs = None
    if network["input"]:
        shape = tuple(parse_size(n, knobs).evaluate(knobs) for n in network["input"])
        tensor = Tensor(name="", shape=(1, *shape), dtype=network["dtype"])
        inputs = Inputs(batch=1, args=(tensor,))
    loss = network["loss"]
    return Part(
        name=network["name"],
        module=module,
        inputs=inputs,
        optimizer=make_optimizer(network["optimizer"], module),
        after=network["after"],
        target=network["target"],
        loss=None if loss == "sum" else getattr(torch.nn, loss)(),
        rollout=network["rollout"],
        copies=[copy.deepcopy(module) for _ in range(network["copies"])],
    )


def _layer(layer: Mapping[str, Any], knobs: Mapping[str, int]) -> Any:
    import torch

    kind = _permute() if layer["type"] == "Permute" else getattr(torch.nn, layer["type"], None)
    if not isinstance(kind, type) or not issubclass(kind, torch.nn.Module):
        raise SpecError(f"torch.nn has no layer {layer['type']!r}")
    options = {k: v for k, v in layer.items() if k not in ("type", "args")}
    try:
        return kind(
            *(_value(v, knobs) for v in layer["args"]),
            **{k: _value(v, knobs) for k, v in options.items()},
        )
    except (TypeError, ValueError) as error:
        raise SpecError(f"torch.nn.{layer['type']} refuses its arguments: {error}") from error


def _permute() -> type:
    """The one layer that torch.nn lacks: axes in another order, the batch included."""
    import torch

    class Permute(torch.nn.Module):
        def __init__(self, *axes: int) -> None:
            super().__init__()
            self.axes = axes

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.permute(self.axes)

    return Permute


def _value(value: Any, knobs: Mapping[str, int]) -> Any:
    """A layer's argument: words that are no expression over knobs stay words (`"same"`)."""
    if isinstance(value, list):
        return tuple(_value(v, knobs) for v in value)
    if not isinstance(value, str):
        return value
    try:
        return parse_size(value, knobs).evaluate(knobs)
    except ValueError:
        return value
