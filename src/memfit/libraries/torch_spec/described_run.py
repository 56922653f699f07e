"""Build the plain torch training that a run spec describes."""

from __future__ import annotations

import copy
import difflib
import importlib
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from memfit.errors import SpecError, one_line
from memfit.libraries.torch_spec.networks import Inputs, Network, Tensor
from memfit.libraries.torch_spec.torch_run import input_fact, make_optimizer
from memfit.libraries.torch_spec.training import TorchTraining
from memfit.model import ArraySpec, EvidenceKind, Place, RunSpec, UpdateSpec, names_in, parse_size


def from_spec(facts: Mapping[str, Any]) -> TorchTraining:
    """The training that a run spec describes; `facts` is what `memfit.sources.spec.load` gives."""
    import torch

    knobs: dict[str, int] = dict(facts["knobs"])
    if facts["update"]["threads"]:
        torch.set_num_threads(facts["update"]["threads"])
    parts = list(_parts(facts["network"], knobs))
    fixed = _settling(facts["network"], knobs)
    update = {name: _settled(value, fixed) for name, value in facts["update"].items()}
    return TorchTraining(
        RunSpec(
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
                rollout=update["rollout"] or 0,
                steps=update["steps"] or 0,
                records_gradients=update["rollout_records_gradients"],
                keeps_last_graph=update["keeps_last_graph"],
            ),
            scale=_scale(update, knobs),
        ),
        parts,
        joint_loss=update["joint_loss"],
        described=True,
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

    dims = ", ".join(map(str, array["shape"]))
    return ArraySpec(
        name=array["name"],
        shape=tuple(_settled(n, fixed) for n in array["shape"]),
        dtype=array["dtype"],
        itemsize=np.dtype(array["dtype"]).itemsize,
        kind=array["kind"],
        phases=tuple(array["phases"]),
        filled=_settled(array["filled"], fixed),
        pieces=_settled(array["pieces"], fixed),
        place=Place(array["place"]),
        evidence=EvidenceKind(array["evidence"]),
        where=array["where"] or f"the run spec: {array['dtype']} ({dims})",
    )


def _scale(update: Mapping[str, Any], knobs: Mapping[str, int]) -> dict[str, int]:
    """The knob that makes the run larger or smaller; none where its size is fixed."""
    whole = update["rollout_records_gradients"] or not update["minibatch"]
    name = next(names_in(update["batch"] if whole else update["minibatch"]), "")
    return {name: knobs[name]} if name else {}


def _parts(networks: Sequence[Mapping[str, Any]], knobs: Mapping[str, int]) -> Iterator[Network]:
    for i, network in enumerate(networks):
        try:
            part = _part(network, knobs)
        except SpecError as error:
            raise SpecError(f"network[{i}] ({network['name']}): {error}") from error
        yield part


def _part(network: Mapping[str, Any], knobs: Mapping[str, int]) -> Network:
    import torch

    if network["factory"]:
        module = _made(network["factory"])
    else:
        layers = [_layer(i, layer, knobs) for i, layer in enumerate(network["layers"])]
        module = torch.nn.Sequential(*layers)
    inputs = None
    if network["input"]:
        shape = tuple(parse_size(n, knobs).evaluate(knobs) for n in network["input"])
        tensor = Tensor(name="", shape=(1, *shape), dtype=network["dtype"])
        inputs = Inputs(batch=1, args=(tensor,))
    optimizer = _optimizer(network["optimizer"], module)
    loss = _loss(network["loss"])
    with _refused("it cannot be copied"):
        copies = [copy.deepcopy(module) for _ in range(network["copies"])]
    return Network(
        name=network["name"],
        module=module,
        inputs=inputs,
        optimizer=optimizer,
        after=network["after"],
        target=network["target"],
        loss=loss,
        rollout=network["rollout"],
        copies=copies,
    )


@contextmanager
def _refused(what: str) -> Iterator[None]:
    """Whatever torch raises inside, the spec has asked for."""
    try:
        yield
    except Exception as error:
        raise SpecError(f"{what}: {one_line(error)}") from error


def _named(library: Any, name: str, base: type, what: str) -> Any:
    """The class of that name in torch, which must be of the right family."""
    classes = {n: v for n, v in vars(library).items() if isinstance(v, type)}
    known = [n for n, v in classes.items() if issubclass(v, base)]
    if name in known:
        return classes[name]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    raise SpecError(f"{library.__name__} has no {what} {name!r}{hint}")


def _made(factory: str) -> Any:
    """What the factory returns; what it raises itself is its author's to see."""
    import torch

    module_name, _, name = factory.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise SpecError(f"factory: there is no module {error.name!r}") from error
    make = getattr(module, name, None)
    if not callable(make):
        raise SpecError(f"factory: {module_name!r} has no function {name!r}")
    try:
        inspect.signature(make).bind()
    except (TypeError, ValueError) as error:
        raise SpecError(f"factory: {name!r} is called without arguments: {error}") from error
    made = make()
    if not isinstance(made, torch.nn.Module):
        raise SpecError(f"factory: {name!r} gives a {type(made).__name__}, not a torch.nn.Module")
    return made


def _optimizer(name: str, module: Any) -> Any:
    import torch

    if name == "none":
        return None
    kind = _named(torch.optim, name, torch.optim.Optimizer, "optimizer")
    with _refused(f"torch.optim.{name} refuses its parameters"):
        return make_optimizer(kind, module)


def _loss(name: str) -> Any:
    import torch

    if name == "sum":
        return None
    kind = _named(torch.nn, name, torch.nn.modules.loss._Loss, "loss")
    with _refused(f"torch.nn.{name} cannot be made without arguments"):
        return kind()


def _layer(index: int, layer: Mapping[str, Any], knobs: Mapping[str, int]) -> Any:
    import torch

    name = layer["type"]
    kind = _permute() if name == "Permute" else _named(torch.nn, name, torch.nn.Module, "layer")
    options = {k: v for k, v in layer.items() if k not in ("type", "args")}
    with _refused(f"layers[{index}]: {name} refuses its arguments"):
        return kind(
            *(_value(v, knobs) for v in layer["args"]),
            **{k: _value(v, knobs) for k, v in options.items()},
        )


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
