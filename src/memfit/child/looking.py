"""The looks at a training that is about to begin: a survey, or a rehearsal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memfit.errors import Unsupported
from memfit.formulas.array_bytes import scaled
from memfit.measure.survey.beside_training import with_beside
from memfit.measure.survey.rehearsal import Rehearsal
from memfit.measure.survey.surveyor import Surveyor
from memfit.model import Rehearsed
from memfit.model.job import Job, Look, Status
from memfit.model.training import Driven, Training


def look_at(training: Training, job: Job, stopped: int, scratch: Path) -> dict[str, Any]:
    """The fields of an answer that tell what was found."""
    if not isinstance(training, Driven):
        raise Unsupported(f"{type(training).__name__} can be observed, but not driven")
    if job.look is Look.SURVEY:
        return _survey(training, stopped, scratch)
    return _rehearse(training, job, scratch)


def _survey(training: Driven, stopped: int, scratch: Path) -> dict[str, Any]:
    """Facts and readings, from a little collecting and small updates."""
    training.prepare()
    spec = training.facts()
    larger = {**spec.knobs, **scaled(spec, times=2)}
    surveyor = Surveyor(training, stopped=stopped, knobs=spec.knobs, larger=larger)
    readings = with_beside(surveyor.run(), training.beside(), scratch)
    # Optimizers have their state now, and updates have shown how they go about.
    return {"status": Status.SURVEYED, "spec": training.facts(), "readings": readings}


def _rehearse(training: Driven, job: Job, scratch: Path) -> dict[str, Any]:
    """Peaks at the scales that the job asks for, smallest first, or at the run's own size."""
    training.prepare()
    own = training.facts()
    rehearsal = Rehearsal(training, scratch, job.seconds)
    found = []
    for scale in job.scales or (own.scale,):
        moments = rehearsal.run({**own.knobs, **scale})
        found.append(Rehearsed(knobs=dict(scale), moments=moments))
    return {"status": Status.REHEARSED, "rehearsed": tuple(found)}
