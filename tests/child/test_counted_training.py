"""A run that trains as it is, counted: where it ends, and what is told of it."""

from __future__ import annotations

from typing import NoReturn

import pytest

from memfit.child import counted_training
from memfit.child.counted_training import CountedTraining
from memfit.model.job import Answer, Job, Status, TargetKind


class Told(Exception):
    """The answer, where a child would end."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer


def tell(answer: Answer) -> NoReturn:
    raise Told(answer)


def counted(updates: int = 0, seconds: float = 60.0) -> CountedTraining:
    job = Job(kind=TargetKind.SCRIPT, target="train.py", updates=updates, seconds=seconds)
    return CountedTraining(job, tell)


def cycle(training: CountedTraining, steps: int, updates: int) -> None:
    for _ in range(steps):
        training.stepped(None, 1)
    for _ in range(updates):
        training.updated()


def test_a_run_ends_where_its_third_cycle_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted_training, "_SECONDS", 0.0)
    training = counted()
    cycle(training, 5, 20)
    cycle(training, 5, 20)
    with pytest.raises(Told) as ended:
        training.stepped(None, 1)
    trained = ended.value.answer.trained
    assert ended.value.answer.status is Status.TRAINED
    assert trained is not None and (trained.updates, trained.cycles) == (40, 2)


def test_few_updates_are_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted_training, "_SECONDS", 0.0)
    training = counted()
    for _ in range(5):
        cycle(training, 1, 2)
    assert training.updates == 10


def test_a_run_that_is_told_a_number_ends_at_what_follows_it() -> None:
    training = counted(updates=3)
    cycle(training, 2, 3)
    with pytest.raises(Told) as ended:
        training.updated()
    trained = ended.value.answer.trained
    assert trained is not None and trained.updates == 3


def test_a_long_update_ends_when_its_time_is_over() -> None:
    training = counted(seconds=0.0)
    training.stepped(None, 1)
    with pytest.raises(Told):
        training.updated()


def test_a_script_that_ends_by_itself_tells_what_it_has_done() -> None:
    training = counted()
    assert training.ended() is None
    cycle(training, 1, 1)
    answer = training.ended()
    assert answer is not None and answer.trained is not None
    assert answer.trained.updates == 1
