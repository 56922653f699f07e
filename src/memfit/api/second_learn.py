"""A script that trains a second model: how to come to it, and what to say of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from memfit.model import Ledger, Readings, RunSpec

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
