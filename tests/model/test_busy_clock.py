"""The busy clock counts work in full, and waiting for a quarter."""

from __future__ import annotations

import time

from memfit.model.busy_clock import BusyClock


def test_busy_work_counts_in_full() -> None:
    clock = BusyClock()
    started = time.thread_time()
    while time.thread_time() - started < 0.05:
        pass
    assert clock.seconds() >= 0.05


def test_waiting_counts_for_a_quarter() -> None:
    clock, before = BusyClock(), time.perf_counter()
    time.sleep(0.2)
    seconds, waited = clock.seconds(), time.perf_counter() - before
    # Hardly any of the time was work, however long others kept this thread waiting.
    assert 0.05 <= seconds <= waited / 4 + 0.01


def test_it_begins_where_it_is_made() -> None:
    started = time.thread_time()
    while time.thread_time() - started < 0.03:
        pass
    wall, clock = time.perf_counter(), BusyClock()
    assert clock.seconds() <= max(0.01, (time.perf_counter() - wall) / 4)
