"""Curves with fewer points keep what matters of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memfit.model import at_fewer_times, fewer_points


@given(st.lists(st.integers(0, 1000), max_size=400), st.integers(3, 60))
def test_a_curve_of_fewer_points_keeps_order_extremes_and_the_end(
    amounts: list[int], most: int
) -> None:
    points = list(enumerate(amounts))
    kept = fewer_points(points, most, lambda point: point[1])
    assert len(kept) <= most
    assert kept == sorted(kept) and set(kept) <= set(points)
    if points:
        assert kept[-1] == points[-1]
        assert max(a for _, a in kept) == max(amounts)
        assert min(a for _, a in kept) == min(amounts)


def test_curves_that_are_stacked_keep_the_same_times() -> None:
    long = [(i, i) for i in range(1000)]
    short = [(i, 7) for i in range(300, 420)]
    first, second = at_fewer_times([long, short], 50)
    assert len(first) <= 50
    assert {t for t, _ in second} == {t for t, _ in first if 300 <= t < 420} != set()
    assert at_fewer_times([short], 500) == [short]
