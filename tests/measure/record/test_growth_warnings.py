"""Warnings come again as the forecast firms up, each with its interval."""

from __future__ import annotations

from dataclasses import replace

from memfit.measure.record.growth_warnings import GrowthWarnings
from memfit.model import Forecast, Growth, Limit
from memfit.units import MIB

LIMIT = Limit(bytes=1000 * MIB, source="--limit")
STABLE = Forecast(growth=Growth.STABLE, bytes_per_second=0.0)


def leak(at: float, low: float, high: float | None, **more: object) -> Forecast:
    return Forecast(
        growth=Growth.LEAKING,
        bytes_per_second=5.0 * MIB,
        reaches_limit_at=at,
        low=low,
        high=high,
        since=30.0,
        **more,  # type: ignore[arg-type]
    )


def test_a_warning_has_its_interval_and_names_who_grows() -> None:
    warnings = GrowthWarnings(LIMIT)
    text = warnings.text(400 * MIB, 50.0, leak(170, 150, 210, members=("12 (worker 1)",)))
    assert text == (
        "400 MiB of 1000 MiB, leaking by 5.00 MiB/s since 30 s, in 12 (worker 1): the limit is "
        "reached in about 120 s (100 s to 160 s, in 90 of 100 cases)"
    )


def test_of_what_may_still_end_it_says_under_what_the_limit_is_reached() -> None:
    growing = replace(leak(170, 150, 210), growth=Growth.GROWING)
    assert GrowthWarnings(LIMIT).text(400 * MIB, 50.0, growing) == (
        "400 MiB of 1000 MiB, growing by 5.00 MiB/s since 30 s: the limit is reached in about "
        "120 s if it goes on so (100 s to 160 s, in 90 of 100 cases)"
    )


def test_long_names_of_processes_are_shortened_in_the_middle() -> None:
    name = f"15097 (python -B -c {'x' * 200} --multiprocessing-fork)"
    text = GrowthWarnings(LIMIT).text(400 * MIB, 50.0, leak(170, 150, 210, members=(name,)))
    assert "in 15097 (python" in text and "…" in text and "--multiprocessing-fork): the" in text


def test_it_comes_again_when_half_the_time_is_left_or_it_is_known_twice_as_well() -> None:
    warnings = GrowthWarnings(LIMIT)
    assert warnings.text(400 * MIB, 50.0, leak(170, 110, 290))
    assert not warnings.text(450 * MIB, 60.0, leak(170, 115, 270))
    assert warnings.text(500 * MIB, 70.0, leak(170, 150, 200))  # narrower
    assert not warnings.text(600 * MIB, 90.0, leak(170, 150, 190))
    assert warnings.text(800 * MIB, 140.0, leak(170, 160, 180))  # sooner
    assert warnings.text(950 * MIB, 165.0, leak(170, 168, 175))


def test_near_the_limit_it_warns_once_also_without_growth() -> None:
    warnings = GrowthWarnings(LIMIT)
    assert not warnings.text(800 * MIB, 10.0, STABLE)
    assert warnings.text(910 * MIB, 20.0, STABLE) == "910 MiB of 1000 MiB"
    assert not warnings.text(920 * MIB, 30.0, STABLE)


def test_of_a_run_that_falls_nothing_is_forecast() -> None:
    warnings = GrowthWarnings(LIMIT)
    assert warnings.text(800 * MIB, 50.0, leak(170, 150, 210))
    assert not warnings.text(260 * MIB, 160.0, leak(163, 160, 170))
    assert warnings.text(270 * MIB, 165.0, leak(168, 165, 175))


def test_without_a_limit_a_leak_is_told_each_time_that_it_has_doubled() -> None:
    warnings = GrowthWarnings(None)
    assert not warnings.text(400 * MIB, 10.0, STABLE)
    small = Forecast(
        growth=Growth.LEAKING, bytes_per_second=1.0 * MIB, since=9.0, grown_bytes=20 * MIB
    )
    assert warnings.text(400 * MIB, 30.0, small) == "leaking by 1.00 MiB/s since 9 s"
    assert not warnings.text(400 * MIB, 40.0, small)


def test_without_a_limit_growth_is_told_again_once_it_is_a_leak() -> None:
    warnings = GrowthWarnings(None)
    leaks = Forecast(
        growth=Growth.LEAKING, bytes_per_second=1.0 * MIB, since=9.0, grown_bytes=30 * MIB
    )
    grows = replace(leaks, growth=Growth.GROWING, grown_bytes=20 * MIB)
    assert warnings.text(400 * MIB, 30.0, grows) == "growing by 1.00 MiB/s since 9 s"
    assert warnings.text(400 * MIB, 40.0, leaks) == "leaking by 1.00 MiB/s since 9 s"
    assert not warnings.text(400 * MIB, 50.0, leaks)
