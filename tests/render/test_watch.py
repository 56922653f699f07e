"""The live view: its frame as text, and its keys."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from memfit.model import Frame
from memfit.render import frame_blocks, frame_line, frame_summary
from memfit.render.blocks import Table, Text
from memfit.render.chart import chart
from memfit.units import MIB
from tests.samples_live import frame

FRAME = frame()


def test_a_line_says_how_much_and_how_it_goes_on() -> None:
    line = frame_line(FRAME)
    for words in ("3.00 GiB of 4.00 GiB", "2 processes", "12 threads", "leaking", "120 s"):
        assert words in line
    assert "MISSED: threads per process" in line
    assert "ended" in frame_line(replace(FRAME, ended=True))


def test_a_frame_has_rows_processes_and_targets() -> None:
    texts = [b.text for b in frame_blocks(FRAME) if isinstance(b, Text)]
    assert frame_line(FRAME) in texts


def test_threads_that_are_not_recorded_are_not_shown_as_none() -> None:
    first, *others = FRAME.processes
    found = replace(FRAME, processes=(replace(first, threads=0), *others))
    tables = [block for block in frame_blocks(found) if isinstance(block, Table)]
    (table,) = (block for block in tables if block.columns[0].name == "PID")
    shown = {row[0]: row[2] for row in table.rows}
    assert shown[str(first.pid)] == ""
    assert [shown[str(p.pid)] for p in others] == [str(p.threads) for p in others]


def test_a_chart_rises_with_its_readings_and_has_a_scale() -> None:
    lines = chart(FRAME.readings, 40, 6, 150 * MIB)
    assert len(lines) == 7 and max(map(len, lines)) <= 40
    assert lines[0].startswith("limit 150 MiB ┤┄")
    assert lines[-2].lstrip().startswith("0 ┤") and lines[-2].endswith("█")
    assert lines[-1].split() == ["0", "s", "99", "s"]
    assert len(lines[2]) == 40 and lines[2].endswith("█") and "▁" in "".join(lines)


def test_a_limit_far_above_is_not_drawn() -> None:
    lines = chart(FRAME.readings, 40, 3, 4 * 2**30)
    assert not any("limit" in line for line in lines)
    assert lines[0].lstrip().startswith("99.0 MiB ┤")
    assert chart((), 40, 6, 1) == [] and len(chart(FRAME.readings[:1], 20, 3, MIB)) == 4


def test_a_summary_says_the_peak_the_rows_what_is_missed_and_a_verdict() -> None:
    ended = replace(FRAME, ended=True, notes=("ended by memfit, over the limit",))
    texts = [b.text for b in frame_summary(ended) if isinstance(b, Text)]
    assert texts[0] == "peak 99.0 MiB after 99 s; limit 4.00 GiB (--limit); ended after 99 s"
    assert texts[1].startswith("largest rows: malloc.heap 2.00 GiB")
    assert texts[2] == "MISSED: threads per process 9, at most 4"
    assert texts[3] == "ended by memfit, over the limit"
    assert texts[4].startswith("verdict: leaking by 1.00 MiB/s")


def test_keys_sort_freeze_and_explain() -> None:
    pytest.importorskip("textual")
    from textual.widgets import DataTable, Static

    from memfit.render.watch_app import Explained, WatchApp

    frames = 0

    def next_frame() -> Frame:
        nonlocal frames
        frames += 1
        return FRAME

    asked = []

    def explain(pid: int) -> list[Text]:
        asked.append(pid)
        return [Text(text=f"explained {pid}")]

    async def session() -> None:
        app = WatchApp(next_frame, explain, seconds=0.05)  # type: ignore[arg-type]
        async with app.run_test(size=(100, 40)) as pilot:
            await pilot.pause(0.3)
            table = app.query_one(DataTable)
            assert [row.value for row in table.rows] == ["10", "11"]  # by memory
            assert "GiB" in str(app.query_one("#line", Static).content)
            await pilot.press("s")
            assert [row.value for row in table.rows] == ["11", "10"]  # by threads
            await pilot.press("f")
            seen = frames
            await pilot.pause(0.3)
            assert frames == seen
            await pilot.press("f")
            await pilot.pause(0.3)
            assert frames > seen
            await pilot.press("e")
            await pilot.pause(0.3)
            assert type(app.screen) is Explained
            assert asked == [11]
            await pilot.press("escape")
            assert type(app.screen) is not Explained
            await pilot.press("q")

    asyncio.run(session())


def test_names_of_processes_are_shown_as_they_are() -> None:
    """Neither as markup, which would fail here, nor as what moves a terminal's cursor."""
    pytest.importorskip("textual")
    from textual.widgets import DataTable

    from memfit.render.watch_app import WatchApp

    first, *others = FRAME.processes
    named = replace(FRAME, processes=(replace(first, name="a[/red]\x1b[2J"), *others))

    async def session() -> None:
        app = WatchApp(lambda: named, None, seconds=60)
        async with app.run_test(size=(100, 40)) as pilot:
            await pilot.pause(0.3)
            rows = app.query_one(DataTable)
            assert str(rows.get_row(str(first.pid))[3]) == r"a[/red]\x1b[2J"

    asyncio.run(session())


def test_a_small_terminal_shows_curve_rows_and_processes() -> None:
    pytest.importorskip("textual")
    from textual.widgets import DataTable, Static

    from memfit.render.watch_app import WatchApp

    many = replace(FRAME, rows=tuple((f"row {i}", 2**20 * (20 - i)) for i in range(20)))

    async def session() -> None:
        app = WatchApp(lambda: many, None, seconds=60)
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.pause(0.3)
            assert "99.0 MiB ┤" in str(app.query_one("#curve", Static).content)
            assert "leaking by 1.00 MiB/s" in str(app.query_one("#forecast", Static).content)
            assert app.query_one("#curve", Static).size.height == 6
            assert app.query_one("#rows", Static).size.height >= 3
            assert app.query_one(DataTable).size.height >= 3

    asyncio.run(session())
