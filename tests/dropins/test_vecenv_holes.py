"""Holes of Python's allocator are found, and filled while their fillers are held."""

from __future__ import annotations

import os
import sys

import pytest

from memfit.dropins.workers import holes
from memfit.dropins.workers.holes import filled_holes


def free_bytes() -> int:
    return sum(size * count for size, count in holes._holes())


def test_holes_are_filled_for_as_long_as_fillers_are_held() -> None:
    made = [bytes(20 + i % 400) for i in range(200_000)]
    kept = made[::3]
    del made
    before = free_bytes()
    assert before > 20_000_000  # two of three objects left a hole
    held = filled_holes()
    filled = free_bytes()
    assert filled < before / 4
    assert sum(sys.getsizeof(one) for one in held) > before / 2
    del held
    assert free_bytes() > before / 2
    assert len(kept) == 66_667


def test_standard_error_is_as_before(capfd: pytest.CaptureFixture[str]) -> None:
    filled_holes()
    os.write(2, b"mine")
    assert capfd.readouterr().err == "mine"


def test_nothing_is_filled_where_python_does_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(sys, "_debugmallocstats")
    assert filled_holes() == []
