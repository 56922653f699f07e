"""What a run would have taken without memfit: its own modules, and its view of the files."""

from __future__ import annotations

from dataclasses import replace

from memfit.measure.children.import_cost import ImportCost
from memfit.model.job import Answer
from memfit.model.trial import TrialReading

_MOST_MAPPED = 1.25  # times as many pages of files: more than that is not the view's doing


def own_bytes(answer: Answer, cost: ImportCost, mapped: int) -> int:
    """What memfit adds to a child that has so many bytes of files mapped.

    Through a child's view of the files, the kernel maps the libraries' pages in other stretches,
    and so more of them: how many more is seen by the modules that had been imported in both.
    """
    there = answer.files.get("", 0) + sum(answer.files.get(name, 0) for name in cost.modules)
    if not cost.files < there < _MOST_MAPPED * cost.files:
        return cost.own
    return cost.own + mapped * (there - cost.files) // there


def trial_alone(answer: Answer, cost: ImportCost) -> TrialReading | None:
    """A trial's figures, as the script's own process has them; None where there was none."""
    trial = answer.readings.trial if answer.readings is not None else None
    if trial is None:
        return None
    own = own_bytes(answer, cost, trial.files)
    peaks = {phase: peak - own for phase, peak in trial.peaks.items()}
    return replace(trial, peaks=peaks, built=trial.built - own, now=trial.now - own)
