"""Amounts of memory are read exactly and written for people."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memfit.errors import UsageError
from memfit.units import (
    GIB,
    KIB,
    MIB,
    TIB,
    byte_ticks,
    format_bytes,
    format_change,
    parse_bytes,
    time_ticks,
)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("0", 0),
        ("512", 512),
        ("16GiB", 16 * GIB),
        ("16G", 16 * GIB),
        (" 512 MiB ", 512 * MIB),
        ("1.5 gib", 3 * GIB // 2),
        ("80GB", 80 * 10**9),
        ("2k", 2 * KIB),
        ("1TiB", TIB),
    ],
)
def test_reads_what_people_write(text: str, amount: int) -> None:
    assert parse_bytes(text) == amount


@pytest.mark.parametrize("text", ["", "GiB", "-1GiB", "16 potatoes", "1e9", "1.5.2G", "nan"])
def test_refuses_other_text_and_says_what_to_write(text: str) -> None:
    with pytest.raises(UsageError, match="16GiB"):
        parse_bytes(text)


@given(st.integers(0, 2**60))
def test_plain_numbers_come_back_exactly(amount: int) -> None:
    assert parse_bytes(str(amount)) == amount


@given(st.integers(0, 2**60))
def test_what_is_written_reads_back_within_rounding(amount: int) -> None:
    assert parse_bytes(format_bytes(amount)) == pytest.approx(amount, rel=0.006, abs=1)


@given(st.integers(0, 2**50), st.integers(0, 2**50))
def test_a_larger_amount_never_reads_as_smaller(a: int, b: int) -> None:
    small, large = sorted((a, b))
    assert parse_bytes(format_bytes(small)) <= parse_bytes(format_bytes(large))


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (12 * KIB, "12.0 KiB"),
        (317 * MIB, "317 MiB"),
        (int(4.22 * GIB), "4.22 GiB"),
        (-2 * MIB, "-2.00 MiB"),
    ],
)
def test_writes_for_people(amount: int, text: str) -> None:
    assert format_bytes(amount) == text


@given(st.integers(0, 2**50))
def test_an_axis_of_memory_has_a_few_round_ticks_and_reaches_beyond_its_top(top: int) -> None:
    ticks = byte_ticks(top)
    assert ticks[0] == 0 and top <= ticks[-1] and len(ticks) <= 8
    assert len(set(map(format_bytes, ticks))) == len(ticks)


@given(st.floats(0, 1e9))
def test_an_axis_of_time_has_a_few_ticks_up_to_its_end(last: float) -> None:
    ticks = time_ticks(last)
    assert ticks[0][0] == 0 and last <= ticks[-1][0] + 1 and len(ticks) <= 9
    assert len({words for _, words in ticks}) == len(ticks)


@pytest.mark.parametrize(("amount", "told"), [(MIB, "+1.00 MiB"), (-MIB, "-1.00 MiB"), (0, "0 B")])
def test_a_change_has_its_sign(amount: int, told: str) -> None:
    assert format_change(amount) == told
