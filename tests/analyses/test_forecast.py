"""Forecasts: filling is not leaking, and what rests is stable."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from memfit.analyses.forecast import forecast
from memfit.model import Growth, Reading

MIB = 2**20


def readings(count: int, **amounts: object) -> list[Reading]:
    rate = amounts.get("rate", 0)
    room = amounts.get("room", 0)
    assert isinstance(rate, int) and isinstance(room, int)
    made = []
    for i in range(count):
        grown = rate * i
        filled = min(grown, room) if room else 0
        made.append(
            Reading(
                seconds=0.5 * i,
                bytes=500 * MIB + (filled if room else grown),
                step=100 * i,
                filling=filled,
                room=room - filled if room else 0,
            )
        )
    return made


def test_a_leak_reaches_its_limit_when_the_line_does() -> None:
    found = forecast(readings(200, rate=MIB), 1000 * MIB)
    assert found.growth is Growth.LEAKING
    assert found.reaches_limit_at is not None and found.low is not None
    assert abs(found.reaches_limit_at - 250) <= 2  # 500 MiB more at 2 MiB a second
    assert found.low <= 250 <= (found.high or 0) + 1
    assert found.step is not None and abs(found.step - 50_000) <= 500


def test_a_buffer_being_filled_ends_at_its_size() -> None:
    run = readings(200, rate=MIB, room=300 * MIB)
    found = forecast(run, 1000 * MIB)
    assert found.growth is Growth.FILLING
    assert found.ends_at_bytes == 800 * MIB
    assert found.reaches_limit_at is None  # below the limit even when full
    near = forecast(run, 750 * MIB)
    assert near.reaches_limit_at is not None and abs(near.reaches_limit_at - 125) <= 2


def test_a_full_buffer_is_stable() -> None:
    assert forecast(readings(600, rate=MIB, room=300 * MIB), None).growth is Growth.STABLE


def test_what_rests_is_stable_and_too_little_is_unknown() -> None:
    assert forecast(readings(200), 1000 * MIB).growth is Growth.STABLE
    assert forecast(readings(5), 1000 * MIB).growth is Growth.UNKNOWN
    assert forecast([], None).growth is Growth.UNKNOWN


@settings(deadline=None)
@given(st.lists(st.integers(0, 2**40), max_size=80), st.integers(1, 2**40))
def test_any_readings_have_a_forecast_in_order(amounts: list[int], limit: int) -> None:
    run = [Reading(seconds=float(i), bytes=amount) for i, amount in enumerate(amounts)]
    found = forecast(run, limit)
    if found.reaches_limit_at is not None and found.low is not None:
        assert found.low <= found.reaches_limit_at <= (found.high or float("inf"))
