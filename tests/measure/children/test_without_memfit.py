"""Figures of a survey or a trial are those of the script's own process."""

from __future__ import annotations

from memfit.measure.children.import_cost import ImportCost
from memfit.measure.children.without_memfit import own_bytes, trial_alone
from memfit.model import Readings
from memfit.model.job import Answer, Status
from memfit.model.trial import TrialEnd, TrialReading

TRIAL = TrialReading(
    updates=1,
    cycles=1,
    env_steps=1,
    seconds=1.0,
    ended=TrialEnd.SEEN,
    peaks={"update": 1000},
    built=500,
    now=800,
    files=110,
)
COST = ImportCost(bytes=400, files=100, own=30, modules=frozenset({"numpy", "torch"}))


def answer(trial: TrialReading | None, **files: int) -> Answer:
    readings = Readings(stopped=0, warm=0, unit=1, trial=trial)
    return Answer(status=Status.SURVEYED, readings=readings, files=files)


def test_memfits_own_modules_are_left_out() -> None:
    found = trial_alone(answer(TRIAL), COST)
    assert found is not None
    assert (found.peaks["update"], found.built, found.now) == (970, 470, 770)


def test_so_are_pages_that_only_its_view_of_the_files_maps() -> None:
    found = trial_alone(answer(TRIAL, **{"": 5}, numpy=50, torch=55, gymnasium=300), COST)
    assert found is not None
    assert found.peaks["update"] == 1000 - 30 - 10  # an eleventh of 110 pages


def test_far_more_pages_are_something_else() -> None:
    found = trial_alone(answer(TRIAL, torch=200), COST)
    assert found is not None and found.peaks["update"] == 970


def test_a_survey_has_them_too() -> None:
    assert own_bytes(answer(None, torch=110), COST, mapped=220) == 30 + 20
    assert own_bytes(answer(None), COST, mapped=220) == 30


def test_a_survey_is_no_trial() -> None:
    assert trial_alone(answer(None), COST) is None
