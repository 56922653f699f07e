"""What a trial would have taken without memfit: its own modules, and its view of the files."""

from __future__ import annotations

from dataclasses import replace

from memfit.measure.children.import_cost import ImportCost
from memfit.model.job import Answer
from memfit.model.trial import TrialReading

_MOST_MAPPED = 1.25  # times as many pages of files: more than that is not the view's doing


def trial_alone(answer: Answer, cost: ImportCost) -> TrialReading | None:
    """A trial's figures, as the script's own process has them; None where there was none.

    Through a child's view of the files, the kernel maps the libraries' pages in other stretches,
    and so more of them: how many more is seen where the same packages had been imported in both.
    """
    trial = answer.readings.trial if answer.readings is not None else None
    if trial is None:
        return None
    own, there = cost.own, max((answer.files.get(name, 0) for name in cost.modules), default=0)
    if cost.files < there < _MOST_MAPPED * cost.files:
        own += trial.files * (there - cost.files) // there
    peaks = {phase: peak - own for phase, peak in trial.peaks.items()}
    return replace(trial, peaks=peaks, built=trial.built - own, now=trial.now - own)
