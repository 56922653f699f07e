"""The live view: its frame as text, and its keys."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from memfit.model import Frame
from memfit.render import frame_blocks, frame_line
from memfit.render.blocks import Text
from memfit.render.watch import curve
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


def test_a_curve_rises_with_its_readings_and_has_the_width_asked_for() -> None:
    line = curve(FRAME.readings, 20)
    assert len(line) == 20
    assert line[0] == "▁" and line[-1] == "█"
    assert list(line) == sorted(line)
    assert curve((), 20) == "" and len(curve(FRAME.readings[:1], 5)) == 5


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
        async with app.run_test(size=(100, 40)):
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
        async with app.run_test(size=(80, 24)):
            assert "full height is" in str(app.query_one("#curve", Static).content)
            assert app.query_one("#rows", Static).size.height >= 5
            assert app.query_one(DataTable).size.height >= 4

    asyncio.run(session())
