"""A trial tells phases apart, ends when enough was seen, and leaves what has owners alone."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from memfit.measure.kernel import proc
from memfit.measure.survey import trial as module
from memfit.measure.survey.phase_peaks import PhasePeaks
from memfit.measure.survey.trial import Trial
from memfit.model.trial import TrialEnd, TrialReading

MIB = 2**20


class Ended(Exception):
    """The trial is over."""


MADE: list[Trial] = []


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is waited for, and no trial's thread outlives its test."""
    monkeypatch.setattr(module, "_STEADY_SECONDS", 0.0)
    monkeypatch.setattr(module, "_WORKED_SECONDS", 0.0)
    yield
    while MADE:
        MADE.pop().dismiss()


def trial(found: list[TrialReading], **options: Any) -> Trial:
    def end(reading: TrialReading) -> None:
        found.append(reading)
        raise Ended

    given: dict[str, Any] = {
        "look": lambda moment, last: None,
        "end": end,
        "owned": lambda: False,
        "turned": lambda: None,
        "in_a_loop": lambda: False,
        "memory": 2**62,
        "seconds": 60.0,
        "started": time.perf_counter(),
        "alive": lambda: None,
    }
    MADE.append(Trial(**{**given, **options}))
    return MADE[-1]


def cycle(one: Trial, env: object, work: Callable[[], object] = lambda: None) -> None:
    for _ in range(4):
        one.stepped(env, 2)
    for _ in range(3):
        work()
        one.updated()


def many_cycles(one: Trial, work: Callable[[], object] = lambda: None) -> None:
    env = object()
    for _ in range(400):
        cycle(one, env, work)


def cycles_and_then(one: Trial, then: Callable[[int], object]) -> None:
    env = object()
    for turn in range(10_000):
        cycle(one, env)
        then(turn)


def many_steps(one: Trial) -> None:
    env = object()
    for _ in range(10_000):
        one.stepped(env, 1)
        one.goes_on()


def many_updates(one: Trial) -> None:
    for _ in range(10_000):
        one.updated()


def test_two_whole_cycles_are_enough() -> None:
    found: list[TrialReading] = []
    with pytest.raises(Ended):
        many_cycles(trial(found))
    assert found[0].ended is TrialEnd.SEEN
    assert found[0].cycles >= 2 and found[0].first_update == 8
    assert {"build", "rollout", "update"} <= set(found[0].peaks)


def test_a_spike_of_an_update_is_the_updates() -> None:
    found: list[TrialReading] = []
    with pytest.raises(Ended):
        many_cycles(trial(found), lambda: np.ones(64 * MIB, np.uint8).sum())
    peaks = found[0].peaks
    assert peaks["update"] - peaks["rollout"] > 40 * MIB


def test_another_env_is_an_evaluation_once_updates_have_begun() -> None:
    found: list[TrialReading] = []
    one, env, other = trial(found), object(), object()
    cycle(one, env)
    one.stepped(other, 1)
    assert one.phase == "evaluate"
    one.stepped(env, 1)
    assert one.phase == "rollout" and "evaluate" in one.peaks.bytes


def test_what_comes_every_so_often_is_brought_forward_once() -> None:
    found: list[TrialReading] = []
    one, other, asked = trial(found), object(), list[bool]()
    assert not one.due("f.py:1", now=False), "nothing has learned yet"

    def evaluate(_: int) -> None:
        asked.append(one.due("f.py:1", now=False))
        if asked[-1]:
            one.stepped(other, 1)

    with pytest.raises(Ended):
        cycles_and_then(one, evaluate)
    assert asked.count(True) == 1 and not any(asked[:2])
    assert found[0].brought == 1 and "evaluate" in found[0].peaks


def test_what_came_by_itself_is_not_brought_forward() -> None:
    found: list[TrialReading] = []
    one, asked = trial(found), list[bool]()
    with pytest.raises(Ended):
        cycles_and_then(one, lambda turn: asked.append(one.due("f.py:1", now=turn == 0)))
    assert asked.count(True) == 1
    assert not found[0].brought


def test_what_is_never_asked_again_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SELDOM_SECONDS", 0.1)
    found: list[TrialReading] = []
    one = trial(found)
    cycle(one, object())
    assert not one.due("f.py:1", now=False)
    with pytest.raises(Ended):
        cycles_and_then(one, lambda _: time.sleep(0.001))
    assert not found[0].brought


def test_updates_without_any_env_are_seen_too() -> None:
    found: list[TrialReading] = []
    with pytest.raises(Ended):
        many_updates(trial(found))
    assert found[0].env_steps == 0 and "update" in found[0].peaks


def test_without_anything_that_updates_turns_of_the_loop_are_cycles() -> None:
    found: list[TrialReading] = []
    turns = itertools.cycle([True, *[False] * 59])
    one = trial(found, turned=lambda: next(turns))
    with pytest.raises(Ended):
        many_steps(one)
    assert found[0].ended is TrialEnd.SEEN and not found[0].updates
    assert found[0].cycles > 2 and found[0].env_steps > 120
    assert found[0].length.endswith("env steps, no update was recognised")


def test_what_may_still_update_is_waited_for() -> None:
    found: list[TrialReading] = []
    one, env = trial(found), object()
    for _ in range(500):
        one.stepped(env, 1)
    one.ended()
    assert not found and not one.trains


def test_a_few_steps_of_an_env_are_no_training() -> None:
    found: list[TrialReading] = []
    one = trial(found)
    for _ in range(20):
        one.stepped(object(), 1)
        one.goes_on()
    one.ended()
    assert not found


def test_a_program_of_the_whole_training_is_watched_until_its_memory_is_steady() -> None:
    found: list[TrialReading] = []
    ended = threading.Event()

    def end(reading: TrialReading) -> None:
        found.append(reading)
        ended.set()

    one = trial(found, end=end)
    one.updated()
    one.works_on(lambda: True)
    assert ended.wait(10)
    assert found[0].ended is TrialEnd.SEEN and found[0].whole and found[0].updates == 1


def test_a_program_that_has_come_to_its_end_is_not_waited_for() -> None:
    found: list[TrialReading] = []
    one = trial(found)
    one.updated()
    one.works_on(lambda: False)
    time.sleep(0.2)
    assert not found
    with pytest.raises(Ended):
        one.ended()
    assert found[0].ended is TrialEnd.WHOLE and not found[0].whole


def test_a_program_in_a_loop_is_one_update_of_many() -> None:
    one = trial([], in_a_loop=lambda: True)
    one.updated()
    one.works_on(lambda: True)
    assert one.running is None


def test_what_a_library_owns_is_left_to_it() -> None:
    found: list[TrialReading] = []
    env, one = object(), trial(found, owned=lambda: True)
    for _ in range(50):
        cycle(one, env)
    assert not found
    one.dismiss()
    cycle(one, env)
    assert not found


def test_a_script_that_ends_before_is_told_as_it_was() -> None:
    found: list[TrialReading] = []
    one = trial(found)
    one.stepped(object(), 1)
    one.ended()  # nothing was learned
    one.updated()
    with pytest.raises(Ended):
        one.ended()
    assert found[0].ended is TrialEnd.WHOLE


@pytest.mark.parametrize(
    ("options", "end"),
    [({"seconds": 0.0}, TrialEnd.TIME), ({"memory": 1}, TrialEnd.MEMORY)],
)
def test_it_ends_at_its_time_and_at_its_memory(options: dict[str, Any], end: TrialEnd) -> None:
    found: list[TrialReading] = []
    one = trial(found, end=found.append, **options)
    one.updated()
    for _ in range(200):
        if found:
            break
        time.sleep(0.02)
    assert found[0].ended is end


def test_peaks_are_read_by_phase() -> None:
    peaks = PhasePeaks()
    peaks.close("build")
    held = np.ones(48 * MIB, np.uint8)
    del held
    peaks.close("update")
    peaks.close("rollout")
    assert peaks.bytes["update"] - peaks.bytes["rollout"] > 40 * MIB
    assert peaks.highest == peaks.bytes["update"]


def test_processes_that_the_script_waits_for_are_watched_until_they_hold_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    busy = iter(range(1, 10**6))
    monkeypatch.setattr(Trial, "_busy", lambda self: float(next(busy)))
    monkeypatch.setattr(proc, "descendants", lambda pid: [1])
    monkeypatch.setattr(module, "_WORKED_SECONDS", 3.0)
    found: list[TrialReading] = []
    over = threading.Event()

    def end(reading: TrialReading) -> None:
        found.append(reading)
        over.set()

    one = trial(found, end=end)
    one.started_process()
    one.waits_for(lambda: True)
    assert over.wait(30)
    assert found[0].elsewhere and not found[0].updates and not found[0].env_steps
    assert found[0].ended is TrialEnd.SEEN and "update" in found[0].peaks
    assert "other processes of the script" in found[0].length


def test_a_script_with_processes_that_learns_itself_is_a_loop_as_any_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_WORKED_SECONDS", 10**6)
    found: list[TrialReading] = []
    one = trial(found)
    one.started_process()
    one.waits_for(lambda: True)
    with pytest.raises(Ended):
        cycles_and_then(one, lambda turn: None)
    assert not found[0].elsewhere and found[0].cycles >= 2
