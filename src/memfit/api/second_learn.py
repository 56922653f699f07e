"""A script that trains a second model: how to come to it, and what to say of it."""

from __future__ import annotations

from pathlib import Path

from memfit.model.job import Job, TargetKind

FIRST = "the script calls learn() more than once; the first call needs the most of the first two"
SECOND = (
    "the script calls learn() more than once; the second call needs the most of the first two, and "
    "is what this plan shows"
)
UNSEEN = (
    "the script calls learn() more than once; only the first call could be planned, so that a "
    "later one may need more"
)


def learns_twice(job: Job) -> bool:
    """Whether a second learn() is worth looking for."""
    from memfit.sources.script import learn_calls

    return job.kind is TargetKind.SCRIPT and learn_calls(Path(job.target)) > 1


def notes(job: Job) -> tuple[str, ...]:
    """What the script's text says beyond its first learn()."""
    from memfit.sources.script import notes

    return notes(Path(job.target)) if job.kind is TargetKind.SCRIPT else ()
