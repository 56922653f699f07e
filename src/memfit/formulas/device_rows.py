"""A run's ledger in two: what stays in the machine's memory, and what is on a card."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from memfit.formulas.array_bytes import width
from memfit.formulas.shared_rows import gradient_bytes, line, probed, update_rows
from memfit.model import (
    Component,
    DeviceReading,
    Evidence,
    EvidenceKind,
    Kind,
    Ledger,
    Place,
    Readings,
    RunSpec,
    Slope,
    const,
    maximum,
    phase_of,
)
from memfit.units import GIB, MIB

# A run on the CPU would put these onto a card if it were trained there.
TRAINED_ON_CARD = frozenset(
    {Kind.PARAMETERS, Kind.GRADIENTS, Kind.OPTIMIZER, Kind.ACTIVATIONS, Kind.SCRATCH}
)
CUDA_CONTEXT = 500 * MIB
_HOST_OF_CUDA = GIB
_STATED = (
    "recorded tensors of two small updates, stated at the batch, through the allocator's rules"
)


def goes_to_card(component: Component) -> bool:
    """Networks, what trains them, and the minibatch."""
    return (
        component.place is Place.DEVICE
        or component.kind in TRAINED_ON_CARD
        or component.name.startswith("minibatch.")
    )


def context_row(ledger: Ledger) -> Component:
    """What the driver takes of a card for a process."""
    return Component(
        name="cuda.context",
        kind=Kind.BASE,
        size=const(CUDA_CONTEXT),
        phases=tuple(dict.fromkeys(phase_of(m) for m in ledger.moments)) or ("start",),
        evidence=Evidence(kind=EvidenceKind.ASSUMED, where="a CUDA context takes about 500 MiB"),
        place=Place.DEVICE,
    )


def host_ledger(spec: RunSpec, ledger: Ledger) -> Ledger:
    """What stays with the machine, and what CUDA's libraries take of it."""
    arrays = _arrays(spec)
    rows = [c for c in ledger.components if not goes_to_card(c) and c.name not in arrays]
    phases = context_row(ledger).phases
    why = "CUDA's libraries and pinned staging in the process: about 1 GiB"
    cuda = Component(
        name="cuda.host",
        kind=Kind.BASE,
        size=const(_HOST_OF_CUDA),
        phases=tuple(p for p in phases if p != "start") or phases,
        evidence=Evidence(kind=EvidenceKind.ASSUMED, where=why),
    )
    return ledger.with_rows((*rows, cuda))


def card_ledger(spec: RunSpec, readings: Readings, ledger: Ledger) -> Ledger:
    """What is on the card, as its allocator holds it."""
    found = readings.device
    assert found is not None
    kept, arrays = (Kind.PARAMETERS, Kind.GRADIENTS, Kind.OPTIMIZER), _arrays(spec)
    rows = [
        replace(c, place=Place.DEVICE, reserved=None)
        for c in ledger.components
        if c.kind in kept or c.name in arrays
    ]
    rows += [replace(c, place=Place.DEVICE) for c in _update(spec, ledger, readings, found)]
    rows.append(_slack(spec, ledger.with_rows(rows), found))
    return ledger.with_rows((*rows, context_row(ledger)))


def _update(
    spec: RunSpec, ledger: Ledger, readings: Readings, found: DeviceReading
) -> Iterator[Component]:
    samples, phases = width(spec), (spec.update.moment,)
    traced = readings.activations
    parts = []
    if traced is not None:
        where = "two small forward passes: tensors saved for backward"
        evidence = Evidence(kind=EvidenceKind.DERIVED, where=where)
        parts.append(("update.activations", Kind.ACTIVATIONS, traced, evidence))
    gradients = gradient_bytes(spec)
    yield from update_rows(
        parts,
        Slope(fixed=found.live.fixed - gradients, per_unit=found.live.per_unit),
        samples=samples,
        now=samples.evaluate(ledger.knobs),
        phases=phases,
        scratch=probed(f"minibatch, results, temporaries: {_STATED}"),
    )
    if found.workspaces:
        yield Component(
            name="cublas.workspaces",
            kind=Kind.SCRATCH,
            size=const(found.workspaces),
            phases=phases,
            evidence=Evidence(
                kind=EvidenceKind.ASSUMED,
                where="by cuBLAS's rule: 8,519,680 bytes where the forward pass runs, and as much "
                "where autograd does (32 MiB each on Hopper)",
            ),
        )


def _slack(spec: RunSpec, others: Ledger, found: DeviceReading) -> Component:
    """What the allocator reserves beyond the rows, rounding of sizes included."""
    samples, moment = width(spec), spec.update.moment
    now, arrays = samples.evaluate(others.knobs), _arrays(spec)
    alive = [c for c in others.components if c.alive_in(moment)]
    held = sum(others.bytes_of(c) for c in alive if c.name not in arrays)
    slack = max(0, found.reserved.at(now) - held)
    # Rounding to whole segments is no line: what falls with the batch is stated as it is here.
    growing = max(0, found.reserved.per_unit - found.allocated.per_unit)
    line_ = Slope(fixed=slack - growing * now, per_unit=growing)
    return Component(
        name="allocator.slack",
        kind=Kind.FRAGMENTATION,
        size=maximum(line(line_, samples), 0) if growing else const(slack),
        phases=(moment,),
        evidence=probed(f"reserved and not in tensors at the peak, by simulation: {_STATED}"),
        place=Place.DEVICE,
    )


def _arrays(spec: RunSpec) -> set[str]:
    """Arrays that the library makes where it trains; others are numpy's, and stay."""
    return {array.name for array in spec.arrays if array.on_card}
