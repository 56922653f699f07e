"""Trials of a loop: with the settings that were asked for, and once more with other ones."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import replace

from memfit.analyses.second_trial import other_values, row_values, with_numbers, with_second
from memfit.api.surveyed import Surveyed, ledger_of
from memfit.formulas.run_rows import run_ledger
from memfit.formulas.trial_rows import objects_in
from memfit.libraries import library_of
from memfit.libraries.loop.dimensions import LENGTH
from memfit.measure.children import sandbox
from memfit.measure.children.import_cost import ImportCost
from memfit.model.job import PROGRAMS, Answer, Job, Look, Status, TargetKind
from memfit.sources.script import learn_calls
from memfit.sources.target import text_of

_BY_FORMULA = ("n_envs",)  # more envs may be more processes, and minutes
# A loop is tried for so long, and for this share of the time that its child has: where others
# compute, it takes a while to tell what was seen.
_SECONDS, _SHARE = 60.0, 0.75
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
    latest = _SHARE * timeout
    return replace(
        job,
        look=Look.SURVEY,
        trial_seconds=min(_SECONDS, latest),
        trial_latest=latest,
        trial_bytes=memory,
    )


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
    """A loop's formulas, confirmed by a short trial with smaller values of its settings.

    Where that fails, as networks for small pictures do, the numbers of rows alone are made smaller,
    and the other settings are in no formula.
    """
    if found.job.kind not in PROGRAMS or not (values := other_values(found.spec)):
        return found
    rows, spec = row_values(found.spec), found.spec
    job, answer = _tried_with(found.job, values, timeout)
    if answer.status is not Status.SURVEYED and rows and rows != values:
        job, answer = _tried_with(found.job, rows, timeout)
        spec = with_numbers(spec, set(values) - set(rows))
    if answer.status is not Status.SURVEYED:
        readings = replace(found.readings, notes=(*found.readings.notes, _UNCONFIRMED))
        return replace(found, readings=readings)
    then = ledger_of(job, answer, base)
    spec, readings = with_second(
        spec, found.readings, then.spec, then.readings, objects=objects_in(then.ledger)
    )
    ledger = run_ledger(spec, library_of(spec.library).rows(spec, readings))
    return replace(found, spec=spec, readings=readings, ledger=ledger)


def _tried_with(job: Job, values: Mapping[str, int], timeout: float) -> tuple[Job, Answer]:
    changed = replace(job, knobs={**job.knobs, **values}, rewrite=True, short=True)
    return changed, sandbox.run(changed, timeout=timeout, memory=sandbox.room()).answer
