"""Bytes of a run's arrays, and the sizes at which it is surveyed and rehearsed."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from memfit.model import ArraySpec, RunSpec, Size, ceil_div, const, minimum, parse_size
from memfit.model.training import HeldArray, Sizes


def rows(array: ArraySpec, knobs: Mapping[str, int]) -> Size:
    """The rows of an array, written or not."""
    return parse_size(array.shape[0], knobs) if array.shape else const(1)


def row_bytes(array: ArraySpec, knobs: Mapping[str, int]) -> Size:
    """Bytes of one row of an array."""
    total = const(1)
    for n in array.shape[1:]:
        total = total * parse_size(n, knobs) if isinstance(n, str) else total
    return total * (array.itemsize * prod(n for n in array.shape[1:] if isinstance(n, int)))


def fixed_bytes(array: ArraySpec) -> int:
    """Bytes of an array without the axes that are knobs: of one sample, or one step of one env."""
    return array.itemsize * prod(n for n in array.shape if isinstance(n, int))


def reserved(array: ArraySpec, knobs: Mapping[str, int]) -> Size:
    """All of an array's bytes, written or not."""
    return rows(array, knobs) * row_bytes(array, knobs)


def resident(array: ArraySpec, knobs: Mapping[str, int]) -> Size:
    """The bytes of an array that are ever written."""
    if array.filled is None:
        return reserved(array, knobs)
    filled = minimum(rows(array, knobs), parse_size(array.filled, knobs))
    return filled * row_bytes(array, knobs)


def width(spec: RunSpec) -> Size:
    """The samples that go through the networks at once."""
    update, knobs = spec.update, spec.knobs
    return minimum(parse_size(update.minibatch, knobs), parse_size(update.batch, knobs))


def unit(spec: RunSpec) -> Size:
    """The samples by which the run grows: with the graphs of a rollout, all of it."""
    if spec.update.records_gradients:
        return parse_size(spec.update.batch, spec.knobs)
    return width(spec)


def collects(spec: RunSpec) -> bool:
    """Whether the run has a rollout apart from its updates."""
    return bool(spec.update.rollout) or any("rollout" in a.phases for a in spec.arrays)


def sizes(spec: RunSpec, knobs: Mapping[str, int]) -> Sizes:
    """How large the run is at these knobs."""
    update = spec.update
    copied_in = {array.copied_in for array in spec.arrays}
    batch = parse_size(update.batch, spec.knobs)
    at_once = width(spec).evaluate(knobs)
    return Sizes(
        unit=unit(spec).evaluate(knobs),
        width=at_once,
        rest=batch.evaluate(knobs) % max(1, at_once),
        minibatches=ceil_div(batch, width(spec)).evaluate(knobs),
        collects=collects(spec),
        collected=parse_size(update.rollout, spec.knobs).evaluate(knobs),
        steps=parse_size(update.steps, spec.knobs).evaluate(knobs) if update.rollout else 0,
        iterations=parse_size(update.iterations, spec.knobs).evaluate(knobs),
        records_gradients=update.records_gradients,
        keeps_last_graph=update.keeps_last_graph,
        moment=update.moment,
        arrays=tuple(
            HeldArray(
                name=array.name,
                bytes=resident(array, spec.knobs).evaluate(knobs),
                pieces=max(1, parse_size(array.pieces, spec.knobs).evaluate(knobs)),
                phases=array.phases,
                copied_in=array.copied_in,
            )
            for array in spec.arrays
            if not array.mapped and not copied_in.issuperset(array.phases)
        ),
    )


def scaled(spec: RunSpec, *, times: int = 1, shrink: int = 1) -> dict[str, int]:
    """The knobs of the same run, so many times larger or smaller as a whole."""
    least = 1 if shrink == 1 else 2
    return {n: max(least, value * times // shrink) for n, value in spec.scale.items()}
