"""Shares of a limit go to as many as fit, and nobody waits for ever."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("optuna")

from memfit.integrations.optuna.room import Place, Room, Stopped
from memfit.measure.kernel import proc

GIB = 2**30


def never() -> bool:
    return False


def entered(room: Room, share: int | None) -> tuple[threading.Event, Callable[[], None]]:
    """Enter in a thread; an event for when it has, and a way to leave."""
    inside, leave = threading.Event(), threading.Event()

    def stay() -> None:
        place = room.enter(share, never)
        inside.set()
        leave.wait(20)
        room.leave(place)

    thread = threading.Thread(target=stay)
    thread.start()

    def gone() -> None:
        leave.set()
        thread.join()

    return inside, gone


def test_the_study_s_own_process_is_counted() -> None:
    own = proc.tree_memory(os.getpid()).pss
    assert abs(Room(64 * GIB, None).usable - (64 * GIB - own)) < GIB // 4


def test_as_many_as_fit_are_in_at_once() -> None:
    room = Room(10 * GIB, None)
    room.note_files(0)
    share = room.usable // 2 - 2**26
    first, leave_first = entered(room, share)
    second, leave_second = entered(room, share)
    assert first.wait(10) and second.wait(10)
    third, leave_third = entered(room, share)
    assert not third.wait(0.5)
    leave_first()
    assert third.wait(10)
    leave_second()
    leave_third()
    assert not room.running and not room.waiting and room.most_at_once == 2


def test_pages_that_all_map_count_once() -> None:
    room = Room(10 * GIB, None)
    share = room.usable // 2 + 2**26
    room.note_files(2**29)
    first, leave_first = entered(room, share)
    second, leave_second = entered(room, share)
    assert first.wait(10) and second.wait(10)
    leave_first()
    leave_second()


def test_one_that_wants_all_runs_alone() -> None:
    room = Room(10 * GIB, None)
    small, leave_small = entered(room, GIB)
    assert small.wait(10)
    whole, leave_whole = entered(room, None)
    assert not whole.wait(0.5)
    leave_small()
    assert whole.wait(10)
    later, leave_later = entered(room, 1)
    assert not later.wait(0.5)
    leave_whole()
    assert later.wait(10)
    leave_later()


def test_more_than_was_asked_for_are_never_in() -> None:
    room = Room(10 * GIB, 1)
    first, leave_first = entered(room, 1)
    assert first.wait(10)
    second, leave_second = entered(room, 1)
    assert not second.wait(0.5)
    leave_first()
    assert second.wait(10)
    leave_second()


def test_who_waits_when_the_study_ends_stops() -> None:
    room = Room(10 * GIB, None)
    place = room.enter(None, never)
    started = time.monotonic()
    with pytest.raises(Stopped):
        room.enter(1, lambda: time.monotonic() > started + 0.3)
    room.leave(place)
    assert not room.waiting


@given(shares=st.lists(st.none() | st.integers(1, 2 * GIB), min_size=1, max_size=25))
def test_everybody_gets_in_and_the_limit_holds(shares: list[int | None]) -> None:
    """Whatever they want: who fits goes first, and one that was passed over is not forgotten."""
    room = Room(8 * GIB, None)
    waiting = [Place(share=share) for share in shares]
    room.waiting = list(waiting)
    turns = 0
    while room.waiting or room.running:
        turns += 1
        assert turns <= 3 * len(shares), "somebody waits for ever"
        chosen = [place for place in room.waiting if room._may(place)]
        if not chosen:
            room.leave(room.running[0])
            continue
        assert len(chosen) == 1 or len({place.share for place in chosen}) == 1
        room.waiting.remove(chosen[0])
        for other in room.waiting:
            other.passed += 1
        room.running.append(chosen[0])
        if len(room.running) > 1:
            given = [place.share for place in room.running]
            assert None not in given
            assert sum(share or 0 for share in given) <= 8 * GIB
