"""A demonstration as blocks and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from memfit.model import Compared, Demo, Line, Plan, RecordedDemo, SystemDemo
from memfit.render.blocks import Block, Heading, Text, Tone, muted, numbers, section
from memfit.render.optimize import optimize_blocks, optimize_json
from memfit.render.plan import plan_blocks, plan_json, verdict
from memfit.render.result_json import SCHEMA, picked
from memfit.render.trace import trace_blocks, trace_json
from memfit.units import format_bytes

_LARGEST = 4
_COURSE = ("readings", "events", "limit_bytes", "forecast")  # of its recording, over time


def demo_blocks(demo: Demo) -> list[Block]:
    """A large plan, a small one, predicted beside measured, what it holds, and what helps."""
    title = f"Predicted beside measured, after {demo.updates} real updates"
    return [
        Text(_told(demo), Tone.GOOD, verdict=True),
        *_described(demo.described),
        Heading(f"A small training, planned: {Path(demo.plan.target).name}"),
        *plan_blocks(demo.plan),
        *_compared(title, "phase", [*demo.phases, demo.peak]),
        *_compared("Row by row, in the training process", "row", demo.rows),
        *_recorded(demo.recorded),
        Heading("Its fixes, made and measured"),
        *optimize_blocks(demo.optimized),
        *_before_and_after(demo.recorded),
        Text(f"The whole demonstration took {demo.seconds:.0f} s."),
    ]


def _told(demo: Demo) -> str:
    """One sentence: how near the plan came, and what was saved."""
    peak, recorded = demo.peak, demo.recorded
    return (
        f"Predicted {format_bytes(peak.predicted)}, measured {format_bytes(peak.measured)} "
        f"({_error(peak)}); made to fit, it takes {_saved(recorded)} less"
    )


def _described(plan: Plan) -> list[Block]:
    """The large plan in short."""
    ledger = plan.ledger
    largest = sorted(ledger.components, key=lambda c: -ledger.bytes_of(c))
    alive = [c for c in largest if c.alive_in(ledger.peak.moment)][:_LARGEST]
    fits = [
        f"{row.largest[plan.per]:,} in {row.hardware}"
        for row in plan.capacity
        if row.largest.get(plan.per)
    ]
    return [
        Heading(f"The drone system as described, planned: {ledger.knobs[plan.per]:,} {plan.per}"),
        Text(verdict(plan), Tone.GOOD if plan.fits_machine else Tone.BAD),
        *muted(
            [
                "largest rows: "
                + ", ".join(f"{c.name} {format_bytes(ledger.bytes_of(c))}" for c in alive),
                *([f"{plan.per} that fit: {', '.join(fits)}"] if fits else []),
            ]
        ),
    ]


def _recorded(recorded: RecordedDemo) -> list[Block]:
    """What the recorder saw of it: who holds the memory, when the peak comes, how it goes on."""
    seen = trace_blocks(recorded.trace, recorded.forecast)
    return [
        Heading("The same training, recorded and explained"),
        *(replace(block, verdict=False) if isinstance(block, Text) else block for block in seen),
    ]


def _before_and_after(recorded: RecordedDemo) -> list[Block]:
    """The same training as it is, and with what saves memory, each in a process of its own."""
    rows = [
        ("as it is", format_bytes(recorded.before_bytes), ""),
        ("made to fit", format_bytes(recorded.after_bytes), _saved(recorded)),
    ]
    return [
        *section("Before and after, both measured", ("training", *numbers("peak", "saved")), rows),
        *muted(f"made to fit by {change}" for change in recorded.changes),
    ]


def _saved(recorded: RecordedDemo) -> str:
    return f"{format_bytes(recorded.saved_bytes)} ({recorded.saved_share:.0%})"


def _compared(title: str, first: str, rows: Sequence[Compared]) -> list[Block]:
    return section(
        title,
        (first, *numbers("predicted", "measured", "error")),
        ((r.name, format_bytes(r.predicted), format_bytes(r.measured), _error(r)) for r in rows),
    )


def _error(row: Compared) -> str:
    if not row.measured:
        return "-"
    return f"{(row.predicted - row.measured) / row.measured:+.1%}"


def demo_json(demo: Demo) -> dict[str, Any]:
    """The comparison for programs."""
    return {
        "schema": SCHEMA,
        "kind": "demo",
        "target": demo.plan.target,
        "plan": plan_json(demo.plan),
        "updates": demo.updates,
        "peak": _row(demo.peak),
        "phases": [_row(row) for row in demo.phases],
        "rows": [_row(row) for row in demo.rows],
        "described": picked(
            demo.described, "target", "peak_bytes", "upper_bytes", fits="fits_machine"
        ),
        "optimize": optimize_json(demo.optimized),
        "recorded": {
            "before_bytes": demo.recorded.before_bytes,
            "after_bytes": demo.recorded.after_bytes,
            "changes": list(demo.recorded.changes),
        },
        "course": {
            key: value
            for key, value in trace_json(demo.recorded.trace, demo.recorded.forecast).items()
            if key in _COURSE
        },
        "seconds": round(demo.seconds, 3),
    }


def _row(row: Compared) -> dict[str, Any]:
    return picked(row, "name", predicted_bytes="predicted", measured_bytes="measured")


def system_demo_blocks(demo: SystemDemo) -> list[Block]:
    """Each size of a reference system, then what one more adds."""
    runs = (
        (
            run.training,
            f"{run.knob} {run.value:,}",
            format_bytes(run.predicted),
            format_bytes(run.upper),
            format_bytes(run.measured),
            f"{run.error:+.1%}",
            f"{run.seconds:.0f}",
        )
        for run in demo.runs
    )
    lines = (
        (name, _each(predicted), _each(measured), _fixed(measured))
        for name, (predicted, measured) in demo.lines.items()
    )
    sizes = numbers("size", "predicted", "at most", "measured", "error", "seconds")
    slopes = numbers("each, predicted", "each, measured", "fixed, measured")
    title = f"The {demo.system} system: predicted beside measured"
    return [
        *_nearness(demo),
        *section(title, ("training", *sizes), runs),
        *section("What each one more adds", ("training", *slopes), lines),
        Text(f"The whole demonstration took {demo.seconds:.0f} s."),
    ]


def _nearness(demo: SystemDemo) -> list[Block]:
    if not demo.runs:
        return []
    most, count = demo.largest_error, len(demo.runs)
    return [
        Text(f"Predicted within {most:.1%} of what was measured, in {count} runs", verdict=True)
    ]


def _each(line: Line | None) -> str:
    return "-" if line is None else format_bytes(round(line.bytes_per_unit))


def _fixed(line: Line | None) -> str:
    return "-" if line is None else format_bytes(line.fixed_bytes)


def system_demo_json(demo: SystemDemo) -> dict[str, Any]:
    """The comparison for programs."""
    bytes_of = {
        "predicted_bytes": "predicted",
        "upper_bytes": "upper",
        "measured_bytes": "measured",
    }
    return {
        "schema": SCHEMA,
        "kind": "demo",
        "system": demo.system,
        "runs": [
            {
                **picked(run, "training", "knob", "value", **bytes_of),
                "seconds": round(run.seconds, 3),
            }
            for run in demo.runs
        ],
        "bytes_per_unit": {
            name: {
                "predicted": predicted and predicted.bytes_per_unit,
                "measured": measured and measured.bytes_per_unit,
            }
            for name, (predicted, measured) in demo.lines.items()
        },
        "seconds": round(demo.seconds, 3),
    }
