"""Trials of a loop: with the settings that were asked for, and once more with other ones."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import replace

from memfit.analyses.second_trial import other_values, with_second
from memfit.api.surveyed import Surveyed, ledger_of
from memfit.formulas.run_rows import run_ledger
from memfit.libraries import library_of
from memfit.libraries.loop.dimensions import LENGTH
from memfit.measure.children import sandbox
from memfit.measure.children.import_cost import ImportCost
from memfit.model.job import PROGRAMS, Job, Look, Status, TargetKind
from memfit.sources.script import learn_calls
from memfit.sources.target import text_of

_BY_FORMULA = ("n_envs",)  # more envs may be more processes, and minutes
_SECONDS, _SHARE = 60.0, 0.9  # a loop is tried for, and of the time that its child has
_UNCONFIRMED = (
    "a second trial with other values of the settings did not come through: formulas of them are "
    "read from one trial alone"
)


def is_loop(job: Job) -> bool:
    """Whether a target is a program whose main text calls no learn() of a library."""
    text = text_of(job)
    learns = text is not None and learn_calls(text) > 0
    return job.kind in PROGRAMS and not learns


def trial_job(job: Job, memory: int, timeout: float) -> Job:
    """The job of a trial that takes at most so much memory and time."""
    seconds = min(_SECONDS, _SHARE * timeout)
    return replace(job, look=Look.SURVEY, trial_seconds=seconds, trial_bytes=memory)


def built(
    job: Job, knobs: Mapping[str, int], timeout: float
) -> tuple[Job, sandbox.Ended, sandbox.Ended | None]:
    """The run with the settings asked for if it can be built so, else as it is, and why not.

    What malloc keeps at a size is best seen at that size; what formulas say from another one is for
    settings that a run cannot be built with.
    """
    failed, rewrite = None, is_loop(job)
    by_formula = (LENGTH,) if rewrite else _BY_FORMULA
    asked = {name: value for name, value in knobs.items() if name not in by_formula}
    if asked and (rewrite or job.kind is TargetKind.SCRIPT):
        changed = replace(job, knobs=asked, rewrite=rewrite)
        failed = sandbox.run(changed, timeout=timeout, memory=sandbox.room())
        if failed.answer.status is Status.SURVEYED:
            return changed, failed, None
    return job, sandbox.run(job, timeout=timeout, memory=sandbox.room()), failed


def tried_again(found: Surveyed, timeout: float, base: Future[ImportCost]) -> Surveyed:
    """A loop's formulas, confirmed by a short trial with smaller values of its settings."""
    values = other_values(found.spec)
    if not values or found.job.kind not in PROGRAMS:
        return found
    knobs = {**found.job.knobs, **values}
    job = replace(found.job, knobs=knobs, rewrite=True, short=True)
    answer = sandbox.run(job, timeout=timeout, memory=sandbox.room()).answer
    if answer.status is not Status.SURVEYED:
        readings = replace(found.readings, notes=(*found.readings.notes, _UNCONFIRMED))
        return replace(found, readings=readings)
    then = ledger_of(job, answer, base)
    spec, readings = with_second(found.spec, found.readings, then.spec, then.readings)
    rows = library_of(spec.library).rows(spec, readings)
    return replace(found, spec=spec, readings=readings, ledger=run_ledger(spec, rows))
