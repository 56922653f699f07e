"""A script that trains a second model: which of the two needs more, and what the first leaves."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from memfit.model import (
    Component,
    Evidence,
    EvidenceKind,
    Kind,
    Ledger,
    Readings,
    RunSpec,
    const,
)

FIRST = "the script calls learn() more than once; the first call needs the most of the first two"
SECOND = (
    "the script calls learn() more than once; the second call needs the most of the first two, and "
    "is what this plan shows"
)
UNSEEN = (
    "the script calls learn() more than once; only the first call could be planned, so that a "
    "later one may need more"
)


class Planned(NamedTuple):
    """One learn() of a script: how to come to it, its facts, readings and ledger."""

    job: dict[str, Any]
    spec: RunSpec
    readings: Readings
    ledger: Ledger


def learns_twice(job: Mapping[str, Any]) -> bool:
    """Whether a second learn() is worth looking for."""
    from memfit.sources.script import learn_calls

    return job["kind"] == "script" and learn_calls(Path(job["target"])) > 1


def notes(job: Mapping[str, Any]) -> tuple[str, ...]:
    """What the script's text says beyond its first learn()."""
    from memfit.sources.script import notes

    return notes(Path(job["target"])) if job["kind"] == "script" else ()


def left_by(first: Ledger, *, alive: bool) -> Component:
    """What a trained model still holds while a later one trains.

    Its buffers, gradients and optimizer state, if it is still there; what malloc keeps, in any
    case. What first use of the libraries costs is in the second plan already.
    """
    rows = [c for c in first.components if c.alive_in("rollout") and not c.alive_in("build")]
    kept = [c for c in rows if c.kind is Kind.FRAGMENTATION or (alive and c.kind is not Kind.BASE)]
    where = "the plan of the first learn(): what is alive in its rollout and was not when built"
    return Component(
        name="earlier.learn",
        kind=Kind.BUFFER if alive else Kind.FRAGMENTATION,
        size=const(sum(map(first.bytes_of, kept))),
        phases=("build", "rollout", "update", "evaluate", "save"),
        evidence=Evidence(kind=EvidenceKind.PROBED, where=where),
    )


def with_row(ledger: Ledger, row: Component) -> Ledger:
    """The ledger with one more row, alive in those of its phases that the ledger has."""
    from dataclasses import replace

    from memfit.model import phase_of

    has = {phase_of(moment) for moment in ledger.moments}
    row = replace(row, phases=tuple(phase for phase in row.phases if phase in has))
    return Ledger(components=(*ledger.components, row), knobs=ledger.knobs)
