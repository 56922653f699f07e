"""The document of a reference system: what people write by hand, with where each figure is from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memfit.model import Described, LogicCheck, SystemDocument
from memfit.render.blocks import (
    Block,
    Code,
    PageTitle,
    Text,
    Tone,
    muted,
    names,
    numbers,
    section,
)
from memfit.render.check import training_word
from memfit.render.demo import system_demo_json
from memfit.render.plan import plan_json, verdict
from memfit.render.result_json import SCHEMA
from memfit.units import MIB, format_bytes

_SMALL = MIB // 10


def system_document_blocks(document: SystemDocument) -> list[Block]:
    """The whole document."""
    return [
        PageTitle(f"Memory of the {document.demo.system} system, measured"),
        *_made_on(document),
        *(
            Text(
                f"{way.name}: {verdict(way.plan)}.",
                Tone.GOOD if way.plan.fits_machine else Tone.BAD,
                verdict=True,
            )
            for way in document.ways
        ),
        *_configuration(document),
        *(block for way in document.ways for block in _components(way)),
        *_benchmark(document),
        *_beside(document),
        *_capacity(document),
        *_issues(document),
        *_logic(document.logic),
        *_recommendations(document),
        *_monitoring(document),
    ]


def system_document_json(document: SystemDocument) -> dict[str, Any]:
    """The same for programs: what a demonstration says, and the plans at full size."""
    return {
        **system_demo_json(document.demo),
        "schema": SCHEMA,
        "date": document.date,
        "plan": plan_json(document.first.plan),
        "plans": [
            {
                "training": way.name,
                "peak_bytes": way.plan.peak_bytes,
                "upper_bytes": way.plan.upper_bytes,
                "per": way.plan.per,
                "bytes_per_unit": way.one_more,
            }
            for way in document.ways
        ],
    }


def _made_on(document: SystemDocument) -> Iterator[Block]:
    machine = document.machine
    yield Text(
        f"{document.date}, on {machine.cores} cores ({machine.processor}) with "
        f"{format_bytes(machine.ram_bytes)} of RAM; {', '.join(machine.software)}. "
        f"Written by memfit demo {document.demo.system}: no figure of it by hand.",
        Tone.MUTED,
    )
    yield Text(
        "Memory is the sum of PSS over all processes of a run, read from outside. Planned figures "
        "are of the size that the system is described with, measured ones of the sizes that stand "
        "beside them. Other work ran on the machine, so that no time is given."
    )


def _configuration(document: SystemDocument) -> list[Block]:
    plans = [way.plan for way in document.ways]
    settings = dict.fromkeys(name for plan in plans for name in plan.ledger.knobs)
    rows = [
        ("training", *(f"{p.spec.algorithm} {p.spec.policy}".strip() for p in plans)),
        ("library", *(f"{p.spec.library} {p.spec.version}".strip() for p in plans)),
        *(
            (name, *(f"{p.ledger.knobs[name]:,}" if name in p.ledger.knobs else "" for p in plans))
            for name in settings
        ),
    ]
    columns = (names("setting"), *numbers(*(way.name for way in document.ways)))
    return section("Configuration", columns, rows)


def _components(way: Described) -> Iterator[Block]:
    knob, rows = way.plan.per, way.totals
    shown = [row for row in rows if row[2] >= _SMALL]
    small = [row for row in rows if row[2] < _SMALL]
    yield from section(
        f"Memory by component, {way.name}",
        (names("component"), *numbers(f"bytes for each of {knob}", "in total"), "evidence"),
        ((name, f"{each:,}", format_bytes(amount), kind) for name, each, amount, kind in shown),
        total=("total", f"{way.one_more:,}", format_bytes(way.plan.ledger.peak.bytes), ""),
    )
    yield Text(
        f"Alive at the peak, in {way.plan.ledger.peak.moment}, with {knob} "
        f"{way.plan.ledger.knobs[knob]:,}."
    )
    if small:
        yield from muted([f"Each below 0.1 MiB: {', '.join(row[0] for row in small)}."])


def _benchmark(document: SystemDocument) -> Iterator[Block]:
    demo = document.demo
    yield from section(
        "Measured benchmark",
        ("training", *numbers("size", "planned", "at most", "measured", "error"), "within"),
        (
            (
                run.training,
                f"{run.knob} {run.value:,}",
                format_bytes(run.predicted),
                format_bytes(run.upper),
                format_bytes(run.measured),
                f"{run.error:+.1%}",
                "yes" if run.measured <= run.upper else "no",
            )
            for run in demo.runs
        ),
    )
    for name, (planned, measured) in demo.lines.items():
        if planned is not None and measured is not None:
            yield Text(
                f"{name}: each one more adds {format_bytes(round(measured.bytes_per_unit))} "
                f"beside {format_bytes(measured.fixed_bytes)} fixed, measured "
                f"(planned: {format_bytes(round(planned.bytes_per_unit))})."
            )


def _beside(document: SystemDocument) -> list[Block]:
    first, *others = document.beside
    rows = [
        (first.training, format_bytes(first.measured), "", ""),
        *(
            (run.training, format_bytes(run.measured), format_bytes(saved), f"{share:.0%}")
            for run, (_, saved, share) in zip(others, document.saved, strict=True)
        ),
    ]
    return section(
        f"Before and after, both measured with {first.knob} {first.value:,}",
        ("training", *numbers("peak", "saved", "share")),
        rows,
    )


def _capacity(document: SystemDocument) -> Iterator[Block]:
    plans = [way.plan for way in document.ways]
    knob = plans[0].per
    found = [{row.hardware: row for row in plan.capacity} for plan in plans]
    rows = (
        (
            row.hardware,
            format_bytes(row.bytes),
            *(_largest(each[row.hardware].largest, knob) for each in found),
        )
        for row in plans[0].capacity
    )
    ways = numbers(*(f"{knob}, {way.name}" for way in document.ways))
    yield from section("Capacity by hardware", ("hardware", *numbers("RAM"), *ways), rows)
    yield Text(f"The largest {knob} that fits by plan, with every other setting as it is.")


def _largest(largest: Any, knob: str) -> str:
    if knob not in largest:
        return "none"
    return "any" if largest[knob] is None else f"{largest[knob]:,}"


def _issues(document: SystemDocument) -> Iterator[Block]:
    rows = ((f.severity.value, f.code, f.message, f.where) for f in document.all_issues)
    yield from section("Issues by severity", ("severity", "code", "issue", "where"), rows)
    if not document.all_issues:
        yield Text("None was found, in the text or in the planned run.")


def _logic(checks: tuple[LogicCheck, ...]) -> list[Block]:
    rows = (
        (
            c.title.rstrip("."),
            "; ".join(dict.fromkeys(f.where for f in c.found)) or "not found",
            c.code,
        )
        for c in checks
    )
    return section("Logic checks, as described", ("looked for", "result", "code"), rows)


def _recommendations(document: SystemDocument) -> Iterator[Block]:
    made = [
        (f"train {name}", format_bytes(saved), "both measured")
        for name, saved, _ in sorted(document.saved, key=lambda way: -way[1])
        if saved > 0
    ]
    advised = [
        (
            a.change,
            format_bytes(a.saves_bytes),
            f"{'both measured' if a.verified else 'planned'}; {training_word(a)}",
        )
        for a in document.advice
    ]
    fixes = [
        (f.fix, "", f"{f.code}, {f.where}") for f in document.all_issues if f.fix and not f.bytes
    ]
    ordered = [*made, *advised, *fixes]
    rows = ((str(at), *row) for at, row in enumerate(ordered, start=1))
    columns = (*numbers("priority"), "change", *numbers("saves"), "by")
    yield from section("Recommendations by priority", columns, rows)
    at = document.beside[0]
    if made:
        yield Text(f"Measured savings are with {at.knob} {at.value:,}, planned ones at full size.")


def _monitoring(document: SystemDocument) -> Iterator[Block]:
    rows = (
        (way.name, format_bytes(way.plan.peak_bytes), format_bytes(way.plan.upper_bytes))
        for way in document.ways
    )
    yield from section(
        "Monitoring targets", ("training", *numbers("expected peak", "act above")), rows
    )
    limit = format_bytes(document.ways[-1].plan.upper_bytes).replace(" ", "")
    yield Text(
        "What to type while it runs, at the size that it is described with, made to fit (PID is "
        "the number of its process):"
    )
    yield Code(f"memfit watch PID --total {limit} --serve")
