"""Rows that every kind of run has: its libraries, its networks, and what an update holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from memfit.model import (
    PHASES,
    Component,
    Evidence,
    EvidenceKind,
    Kind,
    NetworkSpec,
    RunSpec,
    Size,
    Slope,
    const,
    maximum,
    phase_of,
)

BUILT = PHASES[1:]
TRAINING = PHASES[2:]

IMPORTED = "a child that only imports the run's libraries (PSS, as if alone on the machine)"

Part = tuple[str, Kind, Slope, Evidence]


def measured(where: str) -> Evidence:
    return Evidence(kind=EvidenceKind.MEASURED, where=where)


def derived(where: str) -> Evidence:
    return Evidence(kind=EvidenceKind.DERIVED, where=where)


def probed(where: str) -> Evidence:
    return Evidence(kind=EvidenceKind.PROBED, where=where)


def line(slope: Slope, unit: Size) -> Size:
    """A measured line over a size instead of a number."""
    return unit * slope.per_unit + slope.fixed


def only(component: Component, phases: set[str]) -> Component:
    """The row in those of its phases that the run has."""
    kept = tuple(p for p in component.phases if phase_of(p) in phases)
    return replace(component, phases=kept)


def base_rows(
    *,
    imports: int,
    built: int,
    used: int,
    where: str,
    parts: Mapping[str, tuple[int, str]] = MappingProxyType({}),
) -> Iterator[Component]:
    """The interpreter and its libraries: imports, what building loads, and first use.

    Of what building loads, `parts` have names: their bytes and what says so.
    """
    rest, rows = max(0, built), []
    for name, (size, evidence) in parts.items():
        named = min(size, rest)
        rest -= named
        rows.append((name, named, BUILT, evidence))
    for name, size, phases, evidence in (
        ("imports", imports, PHASES, IMPORTED),
        *rows,
        ("build", rest, BUILT, f"{where}, less the rows named here"),
        (
            "first_use",
            used,
            TRAINING,
            "the same process after one small update: code pages, thread pools",
        ),
    ):
        yield Component(
            name=f"base.{name}",
            kind=Kind.BASE,
            size=const(max(0, size)),
            phases=phases,
            evidence=measured(evidence),
        )


def network_rows(
    spec: RunSpec, where: Callable[[NetworkSpec], str], parameters: str = ""
) -> Iterator[Component]:
    """Parameters, gradients and optimizer state; `parameters` says more about the first."""
    for network in spec.networks:
        of = where(network)
        for name, kind, size, phases, evidence in (
            (
                "parameters",
                Kind.PARAMETERS,
                network.parameter_bytes,
                BUILT,
                f"{of}: {parameters}" if parameters else of,
            ),
            (
                "gradients",
                Kind.GRADIENTS,
                network.gradient_bytes,
                TRAINING,
                f"{of}: one for each trained parameter",
            ),
            (
                "optimizer",
                Kind.OPTIMIZER,
                network.optimizer_bytes,
                TRAINING,
                f"{network.optimizer}'s state after its first step",
            ),
        ):
            if size or kind is Kind.PARAMETERS:
                yield Component(
                    name=f"{network.name}.{name}",
                    kind=kind,
                    size=const(size),
                    phases=phases,
                    evidence=derived(evidence),
                )


def gradient_bytes(spec: RunSpec) -> int:
    return sum(n.gradient_bytes for n in spec.networks)


def update_rows(
    parts: Sequence[Part],
    live: Slope,
    *,
    samples: Size,
    now: int,
    phases: tuple[str, ...],
    scratch: Evidence,
) -> Iterator[Component]:
    """Of what an update has alive at once, the parts that have names; the rest is scratch."""
    rest = live
    for name, kind, slope, evidence in parts:
        if slope.at(now) > rest.at(now):
            continue  # not all of it is alive at the peak: it stays with what was recorded
        rest = Slope(fixed=rest.fixed - slope.fixed, per_unit=rest.per_unit - slope.per_unit)
        if slope.at(now) > 0:
            size = line(slope, samples)
            yield Component(name=name, kind=kind, size=size, phases=phases, evidence=evidence)
    yield Component(
        name="update.scratch",
        kind=Kind.SCRATCH,
        size=maximum(line(rest, samples), 0),
        phases=phases,
        evidence=scratch,
    )
