"""Lines that allocate what stays: by memray, and by tracemalloc where it is not there."""

from __future__ import annotations

import inspect
import sqlite3
import sys
from pathlib import Path

import numpy as np
import pytest

from memfit.child.env.allocating_lines import Recording

EACH, TIMES = 5000, 40


@pytest.mark.parametrize("with_memray", [True, False])
def test_the_line_that_keeps_is_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, with_memray: bool
) -> None:
    if with_memray:
        pytest.importorskip("memray")
    else:
        monkeypatch.setitem(sys.modules, "memray", None)
    kept = []
    recording = Recording(tmp_path)
    for _ in range(TIMES):
        kept.append(bytearray(EACH))  # this line
        bytearray(2 * EACH)
    first = recording.sites()[0]
    lines, begin = inspect.getsourcelines(test_the_line_that_keeps_is_first)
    at = begin + next(n for n, line in enumerate(lines) if "# this line" in line)
    assert first.where == f"{__file__}:{at}"
    assert first.bytes == pytest.approx(EACH * TIMES, rel=0.05)
    assert first.count >= TIMES


@pytest.mark.parametrize("with_memray", [True, False])
def test_a_line_of_ones_own_stands_before_that_of_the_library_it_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, with_memray: bool
) -> None:
    if with_memray:
        pytest.importorskip("memray")
    else:
        monkeypatch.setitem(sys.modules, "memray", None)
    recording = Recording(tmp_path)
    kept = [np.ones(EACH, np.uint8) for _ in range(TIMES)]  # this one
    first = recording.sites()[0]
    assert len(kept) == TIMES
    lines, begin = inspect.getsourcelines(
        test_a_line_of_ones_own_stands_before_that_of_the_library_it_calls
    )
    at = begin + next(n for n, line in enumerate(lines) if "# this one" in line)
    assert first.where == f"{__file__}:{at}" and "/numpy/" in first.by
    assert first.bytes == pytest.approx(EACH * TIMES, rel=0.05)


def test_what_a_c_library_keeps_is_seen(tmp_path: Path) -> None:
    pytest.importorskip("memray")
    store = sqlite3.connect(":memory:")
    store.execute("create table frames (data blob)")
    recording = Recording(tmp_path)
    for _ in range(TIMES):
        store.execute("insert into frames values (?)", (bytes(20_000),))
    first = recording.sites()[0]
    store.close()
    assert first.where.startswith(__file__) and first.bytes >= 0.9 * 20_000 * TIMES
