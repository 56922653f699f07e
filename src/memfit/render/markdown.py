"""Blocks as Markdown."""

from __future__ import annotations

from collections.abc import Iterable

from memfit.render.blocks import Bars, Block, Code, Column, Heading, PageTitle, Table, Text

_BAR = 20


def to_markdown(blocks: Iterable[Block]) -> str:
    """A page that reads well as text and renders anywhere."""
    return "\n".join(_block(block) for block in blocks)


def _block(block: Block) -> str:
    match block:
        case PageTitle(text=text):
            return f"# {_plain(text)}\n"
        case Heading(text=text):
            return f"## {_plain(text)}\n"
        case Text(text=text):
            return f"{_plain(text)}\n"
        case Code(text=text):
            return f"{_fence(text)}\n{text}\n{_fence(text)}\n"
        case Table():
            return _table(block)
        case Bars():
            return _bars(block)


def _fence(text: str) -> str:
    """A fence that the text itself does not close."""
    fence = "```"
    while fence in text:
        fence += "`"
    return fence


def _table(table: Table) -> str:
    lines = [
        _row(column.name for column in table.columns),
        _row("---:" if column.number else "---" for column in table.columns),
        *(_row(map(_cell, table.columns, row)) for row in table.rows),
    ]
    if table.total:
        lines.append(_row(f"**{_plain(cell)}**" if cell else "" for cell in table.total))
    return "\n".join(lines) + "\n"


def _bars(bars: Bars) -> str:
    lines = [_row(("", "", "")), _row(("---", "---:", "---"))]
    for bar in bars.bars:
        drawn = "█" * max(1, round(bar.share * _BAR))
        lines.append(_row((_plain(bar.label), bar.amount, f"{drawn} {bar.mark}".rstrip())))
    return "\n".join(lines) + "\n"


def _cell(column: Column, text: str) -> str:
    # Inside of a code span only the table's own sign needs an escape.
    if column.code and text and "`" not in text:
        return f"`{text}`".replace("|", "\\|")
    return _plain(text)


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _plain(text: str) -> str:
    """Text that Markdown leaves alone."""
    for sign in "\\|*<`[":
        text = text.replace(sign, f"\\{sign}")
    return text.replace("\n", " ")
