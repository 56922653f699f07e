"""Rows for each env step, from what a trial saw of a buffer that fills."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memfit.libraries.loop.filling import fill_rate, filled_after, steps_to_fill
from memfit.model import parse_size


@pytest.mark.parametrize(
    ("rows", "steps", "rate", "formula"),
    [
        (2000, 2000, Fraction(1), "n"),
        (2300, 2000, Fraction(1), "n"),  # pages more
        (8000, 2000, Fraction(4), "n * 4"),
        (500, 2000, Fraction(1, 4), "ceil_div(n, 4)"),
        (2920, 2000, Fraction(146, 100), "ceil_div(n * 73, 50)"),
        (1400, 2000, Fraction(7, 10), "ceil_div(n * 7, 10)"),
    ],
)
def test_known_rates(rows: int, steps: int, rate: Fraction, formula: str) -> None:
    assert fill_rate(rows, steps) == rate
    assert filled_after("n", rate) == formula


@given(st.integers(1, 10**7), st.integers(1, 10**6), st.integers(1, 10**7))
def test_a_buffer_is_full_after_the_steps_that_fill_it(rows: int, steps: int, size: int) -> None:
    rate = fill_rate(rows, steps)
    assert rate > 0 and abs(float(rate) * steps / rows - 1) <= 0.34
    knobs = {"n": steps_to_fill(size, rate)}
    assert parse_size(filled_after("n", rate), knobs).evaluate(knobs) >= size


def test_a_large_page_may_be_there_for_one_row() -> None:
    assert fill_rate(7000, 5000) == Fraction(7, 5)
    assert fill_rate(7000, 5000, 4500) == 1
    assert fill_rate(7000, 5000, 6000) == Fraction(7, 5)


def test_one_row_a_step_is_told_where_a_large_page_hides_it() -> None:
    assert fill_rate(253_000, 80_000, 79_000) == 1
