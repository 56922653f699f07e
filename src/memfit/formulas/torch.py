"""From a plain torch run's facts and readings to the rows of its ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from memfit.formulas.shared_rows import (
    TRAINING,
    base_rows,
    derived,
    gradient_bytes,
    network_rows,
    only,
    probed,
    update_rows,
)
from memfit.model import (
    ArraySpec,
    Component,
    Kind,
    Ledger,
    Readings,
    RunSpec,
    Size,
    Slope,
    UpdateSpec,
    ceil_div,
    const,
    maximum,
    minimum,
    names_in,
    parse_size,
)

UPDATE = ("update",)


def update_of(spec: RunSpec) -> UpdateSpec:
    """How the run updates; every plain torch run says so."""
    assert spec.update is not None
    return spec.update


def width(spec: RunSpec) -> Size:
    """The samples that go through the networks at once."""
    update = update_of(spec)
    return minimum(parse_size(update.minibatch, spec.knobs), parse_size(update.batch, spec.knobs))


def unit(spec: RunSpec) -> Size:
    """The samples by which the run grows: with the rollout's graphs, all of it."""
    if update_of(spec).records_gradients:
        return parse_size(update_of(spec).batch, spec.knobs)
    return width(spec)


def scaled_by(spec: RunSpec) -> str:
    """The knob that makes the run larger or smaller; empty where its size is fixed."""
    update = update_of(spec)
    names = update.batch if update.records_gradients else update.minibatch
    return next(names_in(names), "")


def scaled(spec: RunSpec, times: int = 1, shrink: int = 1) -> dict[str, int]:
    """The knobs of the same run, so many times larger or smaller."""
    name = scaled_by(spec)
    if not name:
        return dict(spec.knobs)
    return {**spec.knobs, name: max(1, spec.knobs[name] * times // shrink)}


def scale(spec: RunSpec) -> int:
    """The value of the knob that scales the run; 1 where its size is fixed."""
    return spec.knobs.get(scaled_by(spec), 1)


def knobs_at(spec: RunSpec, value: int) -> dict[str, int]:
    """The knobs of the same run with the one that scales it at this value."""
    name = scaled_by(spec)
    return {**spec.knobs, name: value} if name else dict(spec.knobs)


def sizes(spec: RunSpec, knobs: Mapping[str, int]) -> dict[str, Any]:
    """The numbers that a survey or a rehearsal at these knobs works with."""
    update = update_of(spec)
    batch = parse_size(update.batch, knobs)
    return {
        "unit": unit(spec).evaluate(knobs),
        "width": width(spec).evaluate(knobs),
        "minibatches": ceil_div(batch, width(spec)).evaluate(knobs),
        "rollout": parse_size(update.rollout, knobs).evaluate(knobs),
        "steps": parse_size(update.steps, knobs).evaluate(knobs) if update.rollout else 0,
        "arrays": [
            {
                "name": a.name,
                "bytes": resident(a, spec).evaluate(knobs),
                "pieces": max(1, parse_size(a.pieces, knobs).evaluate(knobs)),
                "phases": a.phases,
            }
            for a in spec.arrays
        ],
    }


def ledger(spec: RunSpec, readings: Readings) -> Ledger:
    """Every component of the run, in the order in which a person would name them."""
    components = [
        *_base(spec, readings),
        *network_rows(spec, lambda network: network.name, "its parameters and buffers"),
        *_arrays(spec),
        *_graphs(spec, readings),
        *_update(spec, readings),
    ]
    slack = list(_slack(spec, readings, components))
    components = [_given_way(c, readings, components, spec) for c in components] + slack
    phases = {"start", "build", "update"} | ({"rollout"} if _collects(spec) else set())
    kept = tuple(only(c, phases) for c in components)
    return Ledger(components=kept, knobs=dict(spec.knobs))


def _given_way(
    component: Component, readings: Readings, components: list[Component], spec: RunSpec
) -> Component:
    """Where all rows together say more than the run's allocations came to, scratch gives way."""
    growth = readings.growth.get("update")
    if component.kind is not Kind.SCRATCH or component.phases != UPDATE or growth is None:
        return component
    named = Ledger(components=tuple(components), knobs=spec.knobs).moment_bytes["update"]
    less = min(0, readings.warm + growth.at(readings.batch) - named)
    return replace(component, size=maximum(component.size + less, 0)) if less else component


def _collects(spec: RunSpec) -> bool:
    return bool(update_of(spec).rollout) or any("rollout" in a.phases for a in spec.arrays)


def reserved(array: ArraySpec, spec: RunSpec) -> Size:
    """All of an array's bytes, written or not."""
    total = const(array.itemsize)
    for n in array.shape:
        total = total * parse_size(n, spec.knobs)
    return total


def resident(array: ArraySpec, spec: RunSpec) -> Size:
    """The bytes of an array that are ever written."""
    if array.filled is None:
        return reserved(array, spec)
    row = const(array.itemsize)
    for n in array.shape[1:]:
        row = row * parse_size(n, spec.knobs)
    rows = minimum(parse_size(array.filled, spec.knobs), parse_size(array.shape[0], spec.knobs))
    return rows * row


def _base(spec: RunSpec, readings: Readings) -> Iterator[Component]:
    parameters = sum(n.parameter_bytes for n in spec.networks)
    optimizers = sum(n.optimizer_bytes for n in spec.networks)
    imports = min(readings.base or readings.stopped, readings.stopped)
    built = max(0, readings.stopped - imports - parameters)
    used = readings.warm - readings.retained - imports - built - parameters - optimizers
    where = "the process with the networks built"
    yield from base_rows(imports=imports, built=built, used=used, where=where)


def _arrays(spec: RunSpec) -> Iterator[Component]:
    for array in spec.arrays:
        shape = ", ".join(str(n) for n in array.shape)
        yield Component(
            name=array.name,
            kind=Kind(array.kind),
            size=resident(array, spec),
            reserved=None if array.filled is None else reserved(array, spec),
            phases=array.phases,
            evidence=derived(f"the run spec: {array.dtype} ({shape})"),
        )


def _graphs(spec: RunSpec, readings: Readings) -> Iterator[Component]:
    update = update_of(spec)
    if not update.records_gradients:
        return
    steps = parse_size(update.steps, spec.knobs)
    samples = parse_size(update.rollout, spec.knobs) * steps
    size = samples * readings.graph.per_unit + steps * readings.graph.fixed
    recorded = "recorded allocations of two rollout steps"
    yield Component(
        name="rollout.graph",
        kind=Kind.ACTIVATIONS,
        size=size,
        phases=TRAINING,
        evidence=probed(f"{recorded}: the rollout records gradients, so each step keeps these"),
    )
    if update.keeps_last_graph:
        yield Component(
            name="rollout.last_graph",
            kind=Kind.ACTIVATIONS,
            size=size,
            phases=("rollout",),
            evidence=probed(f"{recorded}: the last iteration's, until the next is complete"),
        )


def _update(spec: RunSpec, readings: Readings) -> Iterator[Component]:
    """What is alive while a minibatch goes forward and backward."""
    samples = width(spec)
    inputs = sum(_sample_bytes(a) for a in spec.observation)
    traced = readings.activations or Slope(fixed=0, per_unit=0)
    parts = [
        (
            "minibatch.inputs",
            Kind.COPIES,
            Slope(fixed=0, per_unit=inputs),
            derived("what the networks are called with"),
        ),
        (
            "update.activations",
            Kind.ACTIVATIONS,
            # Inputs are among the tensors that are saved for backward.
            Slope(fixed=traced.fixed, per_unit=max(0, traced.per_unit - inputs)),
            derived("fake-tensor trace: tensors saved for backward, inputs apart"),
        ),
    ]
    live = readings.live
    yield from update_rows(
        parts,
        Slope(fixed=live.fixed - gradient_bytes(spec), per_unit=live.per_unit),
        samples=samples,
        now=samples.evaluate(spec.knobs),
        phases=UPDATE,
        scratch=probed("recorded allocations of two small updates, extrapolated to the batch"),
    )


def _sample_bytes(array: ArraySpec) -> int:
    total = array.itemsize
    for n in array.shape:
        total *= int(n)
    return total


def _slack(spec: RunSpec, readings: Readings, components: list[Component]) -> Iterator[Component]:
    """What malloc holds beyond what is asked for, at each moment of the replay."""
    named = Ledger(components=tuple(components), knobs=spec.knobs)
    points = [dict(spec.knobs), scaled(spec, times=2)]
    units = [unit(spec).evaluate(knobs) for knobs in points]
    for moment, growth in readings.growth.items():
        held = [
            readings.warm + growth.at(n) - named.evaluator(knobs)[moment]
            for n, knobs in zip(units, points, strict=True)
        ]
        more = (held[1] - held[0]) // max(1, units[1] - units[0])
        yield Component(
            name=f"allocator.slack.{moment}",
            kind=Kind.FRAGMENTATION,
            size=maximum(unit(spec) * more + (held[0] - more * units[0]), 0),
            phases=(moment,),
            evidence=probed("the run's allocations replayed through this machine's malloc"),
        )
