"""The clock of a run leaves out what a process waits for a processor."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from memfit.measure.kernel.run_clock import RunClock


def test_it_goes_on_as_time_does_less_what_was_waited() -> None:
    clock = RunClock()
    before = time.perf_counter()
    first = clock()
    time.sleep(0.05)
    clock.refresh()
    assert clock.waited >= 0
    assert clock() - first <= time.perf_counter() - before
    assert clock() <= time.perf_counter()


def test_waiting_is_read_from_the_kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told = tmp_path / "schedstat"
    told.write_text("5000000000 2000000000 7\n")
    monkeypatch.setattr(os, "open", lambda path, flags, opened=os.open: opened(told, flags))
    clock = RunClock()
    assert clock.waited == 2.0
    told.write_text("5000000000 3500000000 7\n")
    clock.refresh()
    assert clock.waited == 3.5


def test_without_the_kernels_word_it_is_the_wall_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> int:
        raise OSError

    monkeypatch.setattr(os, "open", refused)
    assert RunClock().waited == 0.0
