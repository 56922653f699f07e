"""A search space of Tune as the parameters of a planned space."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from memfit.errors import UsageError
from memfit.integrations.planned_space import Parameter

_PLAIN = (type(None), bool, int, float, str)
_GRID = "grid_search"
BETWEEN = "/"  # as Tune writes what stands in a dictionary of a dictionary


def flat(config: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Each setting of a configuration, nested ones by their path."""
    for name, value in config.items():
        if isinstance(value, Mapping) and set(value) != {_GRID}:
            yield from flat(value, f"{above}{name}{BETWEEN}")
        else:
            yield f"{above}{name}", value


def parameters_of(space: Mapping[str, Any]) -> tuple[dict[str, Parameter], dict[str, Any]]:
    """What varies in a space, and what every trial has."""
    from ray.tune.search.sample import Domain

    varied, constant = {}, {}
    for name, value in flat(space):
        if isinstance(value, Mapping):
            varied[name] = _choices(name, value[_GRID])
        elif isinstance(value, Domain):
            varied[name] = _parameter(name, value)
        elif isinstance(value, _PLAIN):
            constant[name] = value
        else:
            raise UsageError(
                f"{name} of the space is {value!r}, which cannot be told to a plan: use numbers, "
                "texts and choices, or describe the run in a spec: plan='run.toml'"
            )
    return varied, constant


def _choices(name: str, values: Any) -> Parameter:
    for value in values:
        if not isinstance(value, _PLAIN):
            raise UsageError(f"{name} of the space may be {value!r}: use numbers and texts")
    return Parameter(name=name, kind="categorical", choices=tuple(values))


def _parameter(name: str, domain: Any) -> Parameter:
    from ray.tune.search import sample

    if isinstance(domain, sample.Categorical):
        return _choices(name, domain.categories)
    if isinstance(domain, sample.Integer | sample.Float):
        whole = isinstance(domain, sample.Integer)
        sampler = domain.get_sampler()
        step = sampler.q if isinstance(sampler, sample.Quantized) else None
        inner = sampler.get_sampler() if step is not None else sampler
        low, high = domain.lower, domain.upper
        if whole or (math.isfinite(low) and math.isfinite(high)):
            return Parameter(
                name=name,
                kind="int" if whole else "float",
                low=low,
                high=high if step is not None or not whole else high - 1,
                step=step or (1 if whole else None),
                log=isinstance(inner, sample.LogUniform),
            )
        return Parameter(name=name, kind="float", low=0.0, high=1.0)  # it changes no memory
    raise UsageError(
        f"{name} of the space is {domain!r}: what a function draws cannot be planned. Use "
        "tune.choice, tune.randint and their kin"
    )
