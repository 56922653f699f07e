"""Blocks on a terminal: the only place that uses rich, and only when something is shown."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, TextIO

from memfit.render.blocks import Bars, Block, Code, Heading, Table, Text, Tone

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_STYLES = {Tone.PLAIN: "", Tone.GOOD: "bold green", Tone.BAD: "bold red", Tone.MUTED: "dim"}
_BAR = 40
# A file or a pipe has no width of its own.
_WIDTH = 100
_NARROWEST = 20


def to_text(blocks: Iterable[Block], *, width: int) -> str:
    """Blocks as plain text of some width."""
    page = io.StringIO()
    to_terminal(blocks, page, width=width)
    return page.getvalue()


def to_terminal(blocks: Iterable[Block], file: TextIO, *, width: int | None = None) -> None:
    """Write blocks to a stream: with colours on a terminal, as plain text into a file or pipe."""
    from rich.console import Console

    if width is None and not file.isatty():
        width = _asked_width() or _WIDTH
    console = Console(file=file, width=width, highlight=False, markup=False, emoji=False)
    with console.capture() as page:
        for index, block in enumerate(blocks):
            if index and isinstance(block, Heading):
                console.print()
            console.print(_block(block, console), crop=False)
    # Tables are padded to their width; nobody wants that in a file.
    file.write("".join(f"{line.rstrip()}\n" for line in page.get().splitlines()))


def _asked_width() -> int:
    """What COLUMNS says, where it is a width that text can be read in; else 0."""
    told = os.environ.get("COLUMNS", "")
    return int(told) if told.isdecimal() and int(told) >= _NARROWEST else 0


def _block(block: Block, console: Console) -> RenderableType:
    from rich.text import Text as RichText

    match block:
        case Heading(text=text):
            return RichText(text, style="bold")
        case Text(text=text, tone=tone):
            return RichText(text, style=_STYLES[tone])
        case Code(text=text):
            # Never broken: what is copied has to stay one line.
            return RichText(text, no_wrap=True, overflow="ignore")
        case Table():
            return _table(block)
        case Bars():
            return _bars(block, console)


def _table(table: Table) -> RenderableType:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text as RichText

    style = _STYLES[table.tone]
    grid = RichTable(
        box=box.SIMPLE_HEAD, style=style, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False
    )
    for column in table.columns:
        grid.add_column(
            column.name,
            justify="right" if column.number else "left",
            no_wrap=column.number or column.whole,
            overflow="fold",
        )
    for row in table.rows:
        grid.add_row(*(RichText(cell, style=style) for cell in row))
    if table.total:
        grid.add_section()
        grid.add_row(*(RichText(cell, style="bold") for cell in table.total))
    return grid


def _bars(bars: Bars, console: Console) -> RenderableType:
    from rich.table import Table as RichTable
    from rich.text import Text as RichText

    sign = "█" if console.encoding.startswith("utf") else "#"
    grid = RichTable.grid(padding=(0, 2, 0, 0))
    grid.add_column()
    grid.add_column(justify="right")
    grid.add_column()
    for bar in bars.bars:
        drawn = sign * max(1, round(bar.share * _BAR))
        style = "bold" if bar.mark else ""
        mark = f" {bar.mark}" if bar.mark else ""
        grid.add_row(
            *(RichText(cell, style=style) for cell in (bar.label, bar.amount, drawn + mark))
        )
    return grid
