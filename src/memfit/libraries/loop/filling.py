"""How a buffer fills while envs are stepped: rows for each env step, seen in a trial."""

from __future__ import annotations

from fractions import Fraction

_CLOSE = 0.25  # of it: pages are filled one at a time, and a trial ends anywhere


def fill_rate(rows: int, steps: int, least: int | None = None) -> Fraction:
    """Rows for each env step: a whole number, one in so many, or hundredths where neither is so.

    So many rows were there; where `least` is said, not more than these may have been written.
    """
    seen, fewest = rows / steps, (rows if least is None else least) / steps
    if fewest <= 1 <= seen:  # most fill so; what is seen may end with a large page
        return Fraction(1)
    for whole in (max(1, round(seen)), Fraction(1, max(1, round(1 / seen)))):
        if abs(seen - whole) <= _CLOSE * whole or fewest <= whole <= seen:
            return Fraction(whole)
    return Fraction(round(100 * seen), 100)


def filled_after(length: str, rate: Fraction) -> str:
    """The rows that are filled after so many env steps, as a formula of these."""
    if rate == 1:
        return length
    if rate.denominator == 1:
        return f"{length} * {rate}"
    if rate.numerator == 1:
        return f"ceil_div({length}, {rate.denominator})"
    return f"ceil_div({length} * {rate.numerator}, {rate.denominator})"


def rows_after(steps: int, rate: Fraction) -> int:
    """The rows that so many env steps fill."""
    return -(-steps * rate.numerator // rate.denominator)


def steps_to_fill(rows: int, rate: Fraction) -> int:
    """The env steps after which so many rows are filled."""
    return -(-rows * rate.denominator // rate.numerator)
