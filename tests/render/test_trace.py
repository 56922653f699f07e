"""A recorded run in a few lines."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from memfit.formulas.shared_rows import measured
from memfit.model import (
    Component,
    Event,
    EventKind,
    Forecast,
    Growth,
    Kind,
    Ledger,
    Place,
    Trace,
    const,
)
from memfit.render.blocks import Heading, Table, Text
from memfit.render.trace import trace_blocks, trace_summary
from memfit.units import MIB
from tests.samples_live import trace

UNKNOWN = Forecast(growth=Growth.UNKNOWN, bytes_per_second=0.0)


def texts(of: Trace, place: str = "") -> list[str]:
    return [block.text for block in trace_summary(of, UNKNOWN, place) if isinstance(block, Text)]


def test_a_run_that_nobody_could_read_still_says_what_ended_it() -> None:
    killed = Event(seconds=0.1, kind=EventKind.OUT_OF_MEMORY, text="killed by the kernel")
    ended = replace(trace(), readings=(), events=(killed,), exit_code=137)
    assert texts(ended) == [
        "ended with exit code 137 before it could be read",
        "killed by the kernel",
    ]


def test_rows_of_a_recording_add_up_to_its_peak() -> None:
    peak = max(r.bytes for r in trace().readings)
    rows = Ledger(components=(row("blocks.a", peak // 2), row("malloc.heap", peak // 4)))
    early = replace(trace(), peak_ledger=rows, rows_at=1.0)
    (table,) = (
        block
        for heading, block in pairwise(trace_blocks(early, UNKNOWN))
        if heading == Heading("Rows at the peak") and isinstance(block, Table)
    )
    shown = [float(cells[1].replace(",", "")) for cells in table.rows]
    assert len(shown) == 3 and sum(shown) == pytest.approx(peak / MIB, abs=0.2)


def row(name: str, amount: int) -> Component:
    return Component(
        name=name,
        kind=Kind.LARGE,
        place=Place.MAIN,
        size=const(amount),
        phases=(),
        evidence=measured("smaps"),
    )


def test_a_recording_without_an_end_says_so() -> None:
    open_end = replace(trace(), exit_code=None)
    assert texts(open_end)[0].endswith(" s, its end is not recorded")
    assert texts(replace(open_end, readings=()))[0] == (
        "it was never read, and its end is not recorded"
    )


def test_a_recording_that_ended_before_the_run_is_not_said_to_be_whole() -> None:
    assert texts(trace(), "night.db")[-1] == "recorded in night.db: memfit explain night.db"
    cut = replace(trace(), cut="database or disk is full")
    assert texts(cut, "night.db")[-1] == (
        "recorded in night.db only until recording ended: memfit explain night.db"
    )
