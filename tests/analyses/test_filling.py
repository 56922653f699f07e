"""What was filled between two looks."""

from __future__ import annotations

import pytest

from memfit.analyses.filling import filled_between
from memfit.analyses.forecast import forecast
from memfit.model import Growth, Reading
from memfit.units import MIB


def test_what_is_looked_at_each_time_is_as_it_was_seen() -> None:
    run = [Reading(seconds=float(i), bytes=0, filling=5 * i, room=100) for i in range(1, 20)]
    assert filled_between(run) == pytest.approx([5.0 * i for i in range(1, 20)])


def test_between_looks_it_goes_on_evenly_and_no_further_than_its_room() -> None:
    run = [Reading(seconds=float(i), bytes=0, filling=40 * (i // 4), room=12) for i in range(4, 15)]
    found = filled_between(run)
    assert found[4] == 80 and found[6] == pytest.approx(100)  # halfway to the look at 12 s
    assert found[-1] == pytest.approx(132)  # 120, and all that there is room for


def test_a_buffer_that_is_looked_at_seldom_is_no_leak() -> None:
    """Looks were ten seconds apart on a busy machine, and memory grew in between."""
    run = [
        Reading(
            seconds=i / 4,
            bytes=round(300 * MIB + max(0, i / 4 - 8) * 8 * MIB),
            filling=max(0, int(i / 40) * 10 - 8) * 8 * MIB,
            room=800 * MIB - max(0, int(i / 40) * 10 - 8) * 8 * MIB,
        )
        for i in range(320)
    ]
    for until in range(20, 320, 20):
        assert forecast(run[:until], None).growth is not Growth.LEAKING, until / 4
    assert forecast(run, None).growth is Growth.FILLING
