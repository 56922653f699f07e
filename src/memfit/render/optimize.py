"""What fixes really save, as blocks and as JSON."""

from __future__ import annotations

from typing import Any

from memfit.model.optimized import Goal, Optimized, TriedFix
from memfit.render.blocks import Block, Code, Heading, Text, Title, Tone, muted, numbers, section
from memfit.render.result_json import SCHEMA, picked
from memfit.units import format_bytes

_COLUMNS: tuple[Title, ...] = (
    "fix",
    *numbers("predicted", "measured", "time"),
    "training",
    "change",
)


def optimize_blocks(found: Optimized) -> list[Block]:
    """What the run takes, what each fix saves of it, all together, and what to do."""
    blocks: list[Block] = [Text(_before(found), Tone.PLAIN if found.fits else Tone.BAD)]
    if not found.tried:
        blocks.append(Text("No fix that memfit can make would save anything here.", Tone.GOOD))
    rows = [_row(one) for one in found.tried]
    if found.together is not None and len(found.together.codes) > 1:
        rows.append(_row(found.together, together=True))
    if rows:
        blocks += section("What each fix saves", _COLUMNS, rows)
    blocks += [
        Text(f"{one.code} was not measured: {one.why_not} ({one.change})", Tone.MUTED)
        for one in found.tried
        if one.why_not
    ]
    if found.together is not None:
        blocks.append(Text(_after(found), Tone.GOOD if found.fits else Tone.BAD))
    if found.goal is not None:
        blocks.append(_goal(found.goal, found))
    if found.patch:
        blocks += [Heading("The edit"), Code(found.patch)]
    if found.written:
        blocks.append(Text(f"written to {found.written}", Tone.GOOD))
    return blocks + muted([_how(found), *(f"note: {note}" for note in found.notes)])


def training_text(one: TriedFix) -> str:
    """What became of the training, as far as it was seen."""
    if one.identical is not None:
        if one.identical:
            return "identical" if one.keeps_training else "not yet changed"
        return "same steps, rounded" if one.to_rounding else "changed"
    claimed = "safe" if one.safe else "same steps" if one.to_rounding else "changes training"
    return f"{claimed}; cannot be told here"


def _before(found: Optimized) -> str:
    peak = "not measured" if found.peak_bytes is None else format_bytes(found.peak_bytes)
    return (
        f"{found.target}: peak {peak} measured, {format_bytes(found.planned_bytes)} planned; limit "
        f"{format_bytes(found.limit_bytes)} ({found.limit_source})"
    )


def _row(one: TriedFix, *, together: bool = False) -> tuple[str, ...]:
    return (
        "together" if together else one.code,
        "" if one.saves_bytes is None else format_bytes(one.saves_bytes),
        "not measured" if one.measured_bytes is None else format_bytes(one.measured_bytes),
        _time(one),
        training_text(one) if one.verified else "",
        one.code if together else one.change,
    )


def _time(one: TriedFix) -> str:
    if one.time_ratio is None:
        return ""
    noise = "" if one.time_noise is None else f" ± {one.time_noise:.2f}"
    return f"x {one.time_ratio:.2f}{noise}"


def _after(found: Optimized) -> str:
    best = found.together
    assert best is not None
    if best.peak_bytes is None:
        return f"{best.code} together could not be measured: {best.why_not}"
    share = "" if found.saved_share is None else f", {found.saved_share:.0%} less"
    return (
        f"With {best.code}: {format_bytes(best.peak_bytes)}{share}; training: {training_text(best)}"
    )


def _goal(goal: Goal, found: Optimized) -> Text:
    what = format_bytes(goal.bytes)
    asked = what if not goal.knobs else f"{goal.text} within {what}"
    if goal.reached:
        how = f"with {found.together.code}" if found.together is not None else "as it is"
        peak = "" if goal.peak_bytes is None else f": {format_bytes(goal.peak_bytes)}"
        return Text(f"Goal {asked}: reached {how}{peak}.", Tone.GOOD)
    near = f"; the nearest is {found.together.code}" if found.together is not None else ""
    missing = f"{format_bytes(goal.missing_bytes)} too much" if goal.missing_bytes else "not shown"
    largest = (
        f". A plan says that up to {goal.largest:,} would fit" if goal.largest is not None else ""
    )
    return Text(f"Goal {asked}: not reached, {missing}{near}{largest}.", Tone.BAD)


def _how(found: Optimized) -> str:
    filled = ", and a replay buffer filled as the run will" if found.filled else ""
    runs = f"{found.runs:,} run" + ("s" if found.runs != 1 else "")
    return f"measured in {runs} of {found.updates:,} updates each{filled}; {found.seconds:.0f} s"


def optimize_json(found: Optimized) -> dict[str, Any]:
    """What `memfit optimize --format json` prints."""
    return {
        "schema": SCHEMA,
        "kind": "optimize",
        **picked(
            found,
            *("target", "peak_bytes", "planned_bytes", "upper_bytes", "after_bytes"),
            *("limit_bytes", "limit_source", "fits", "updates", "cycles", "runs", "filled"),
            *("repeatable",),
        ),
        "advice": [_json(one) for one in found.tried],
        "together": None if found.together is None else _set_json(found.together),
        "goal": None
        if found.goal is None
        else picked(found.goal, "text", "bytes", "knobs", "peak_bytes", "missing_bytes", "largest"),
        "goal_reached": None if found.goal is None else found.goal.reached,
        **picked(found, "patch", "written"),
        "notes": list(found.notes),
        **picked(found, "network", "confinement"),
        "seconds": round(found.seconds, 3),
    }


def _json(one: TriedFix) -> dict[str, Any]:
    return picked(
        one,
        *("code", "saves_bytes", "measured_bytes", "peak_bytes", "change", "safe"),
        *("to_rounding", "identical", "time_ratio", "time_noise", "verified", "costs", "why_not"),
    )


def _set_json(one: TriedFix) -> dict[str, Any]:
    return {"codes": list(one.codes), **_json(one)}
