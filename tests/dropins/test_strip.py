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
