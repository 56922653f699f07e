"""The line through measured points."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memfit.analyses.line import fit, largest
from memfit.model import Line

VALUES = st.lists(st.integers(1, 10**6), min_size=2, max_size=8, unique=True)


@given(VALUES, st.integers(0, 2**30), st.integers(1, 2**20))
def test_points_on_a_line_give_that_line(values: list[int], fixed: int, each: int) -> None:
    line = fit([(v, fixed + each * v) for v in values])
    assert line is not None
    assert abs(line.bytes_per_unit - each) < 1e-6 * each
    assert abs(line.fixed_bytes - fixed) <= 1 + 1e-6 * each * max(values)
    if len(values) == 2:
        assert line.low is None and line.high is None  # one slope has no range
    else:
        assert line.low is not None and line.high is not None
        assert line.low <= line.bytes_per_unit <= line.high


def test_one_odd_point_does_not_bend_it() -> None:
    points = [(n, 1000 + 10 * n) for n in (100, 200, 400, 800, 1600)]
    points[2] = (400, 50_000)
    line = fit(points)
    assert line is not None
    assert abs(line.bytes_per_unit - 10) < 1


def test_one_value_is_no_line() -> None:
    assert fit([(5, 100), (5, 120)]) is None
    assert fit([]) is None


@given(st.integers(0, 10**6), st.integers(1, 10**4), st.integers(0, 10**8))
def test_the_largest_value_fits_and_the_next_does_not(fixed: int, each: int, room: int) -> None:
    line = Line(fixed_bytes=fixed, bytes_per_unit=each, low=each, high=each)
    found = largest(line, room)
    assert found == 0 or line.at(found) <= room
    assert line.at(found + 1) > room
