"""Windows gathered from rows: the same by numpy as by torch, and never from outside."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memfit.dropins.windows.backing import Backing
from memfit.dropins.windows.layout import Array, Window
from memfit.dropins.windows.strip import RawStrip


def strip(length: int, inner: int, bits: int, rows: int) -> tuple[RawStrip, Array]:
    part = Window(offset=0, length=length, inner=inner)
    made = RawStrip(part, np.dtype(f"u{bits}"), Backing())
    made.take(rows)
    values = np.random.default_rng(0).integers(0, 255, (rows, inner)).astype(made.unit)
    made.write(np.arange(rows), values[:, None, None, :])
    return made, values


@pytest.mark.parametrize("library", ["torch", "numpy"])
@given(
    length=st.integers(1, 9),
    inner=st.integers(1, 5),
    bits=st.sampled_from([1, 2, 4, 8]),
    rows=st.integers(9, 40),
    data=st.data(),
)
def test_windows_are_what_was_written(
    library: str, length: int, inner: int, bits: int, rows: int, data: st.DataObject
) -> None:
    made, values = strip(length, inner, bits, rows)
    at = np.array(
        data.draw(st.lists(st.integers(0, rows - length), min_size=1, max_size=12)), np.int64
    )
    out = np.zeros((len(at), 1, length, inner), made.unit)
    with pytest.MonkeyPatch.context() as patch:
        if library == "numpy":
            patch.delitem(sys.modules, "torch", raising=False)
        made.fill(at, out)
    for i, begin in enumerate(at.tolist()):
        assert (out[i, 0] == values[begin : begin + length]).all()
    made.close()


@pytest.mark.parametrize("inner", [1, 600])
def test_a_window_outside_is_an_error(inner: int) -> None:
    made, _ = strip(4, inner, 1, 10)
    out = np.zeros((1, 1, 4, inner), made.unit)
    with pytest.raises(IndexError):
        made.fill(np.array([7]), out)
    made.close()


@given(
    length=st.integers(2, 6),
    bits=st.sampled_from([1, 2, 4, 8]),
    ends=st.lists(st.integers(6, 40), min_size=1, max_size=4),
    other=st.none() | st.integers(0, 10**6),
)
def test_rows_are_compared_where_they_are(
    length: int, bits: int, ends: list[int], other: int | None
) -> None:
    made, values = strip(length, 3, bits, 40)
    given_rows = np.stack([values[end - length : end] for end in ends])
    if other is not None:  # one number that is another one
        given_rows.reshape(-1)[other % given_rows.size] ^= 1
    address, apart = given_rows.ctypes.data, given_rows.strides[0]
    assert made.holds(ends, length, address, apart) is (other is None)
    made.close()


def test_rows_that_are_not_there_are_not_compared() -> None:
    made, values = strip(4, 3, 1, 40)
    address = values.ctypes.data
    assert made.holds([4, 40], 4, address, 0) is False  # other rows
    assert made.holds([41], 4, address, 0) is False
    assert made.holds([3], 4, address, 0) is False
    made.close()
    assert made.holds([4], 4, address, 0) is False


def test_new_rows_come_after_the_last_ones() -> None:
    made, values = strip(4, 3, 1, 40)
    blocks = np.arange(24, dtype=np.uint8).reshape(2, 1, 4, 3)
    made.put([10, 20], blocks, 3)
    values[10], values[20] = blocks[0, 0, 3], blocks[1, 0, 3]
    assert (made.read(np.array([0]), 40)[0, :, 0] == values).all()
    made.close()
