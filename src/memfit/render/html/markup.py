"""Blocks as HTML elements: everything that comes from names, arguments or code is escaped."""

from __future__ import annotations

import html
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest

from memfit.render.blocks import Bars, Block, Code, Column, Heading, Table, Text, Tone, numbers

_WORST = (Tone.BAD, Tone.GOOD, Tone.PLAIN, Tone.MUTED)
_WIDE = 30  # characters of a cell that gets a wider column
_LONG = 40  # rows of a table, beyond which it opens when it is asked for


def split_verdict(blocks: Sequence[Block]) -> tuple[str, list[Block]]:
    """The sentence that says it all, as an element, and the blocks without it."""
    texts = [block for block in blocks if isinstance(block, Text)]
    told = [text for text in texts if text.verdict]
    judged = [text for text in texts if text.tone in (Tone.GOOD, Tone.BAD)]
    chosen = told or judged[:1] or texts[:1]
    if not chosen:
        return "", list(blocks)
    worst = min((text.tone for text in chosen), key=_WORST.index)
    words = "; ".join(text.text for text in chosen)
    element = f'<p class="verdict {worst}">{_escaped(words)}</p>'
    return element, [block for block in blocks if not any(block is text for text in chosen)]


def without_drawn(blocks: Sequence[Block], drawn: Container[str]) -> list[Block]:
    """Blocks without lengths and charts, and their headings, that a picture of the page shows."""
    kept: list[Block] = []
    for block in blocks:
        if isinstance(block, Bars | Code) and block.picture in drawn:
            if kept and isinstance(kept[-1], Heading):
                kept.pop()
        else:
            kept.append(block)
    return kept


def block_elements(blocks: Iterable[Block]) -> Iterator[str]:
    """Blocks, one section from heading to heading."""
    opened = False
    for block in blocks:
        if isinstance(block, Heading) or not opened:
            yield "</section>" if opened else ""
            yield '<section class="blocks">'
            opened = True
        yield _block(block)
    yield "</section>" if opened else ""


def _block(block: Block) -> str:
    match block:
        case Heading(text=text):
            return f"<h2>{_escaped(text)}</h2>"
        case Text(text=text, tone=tone, copy=copy):
            return f'<p class="{tone}">{_escaped(text)}{_command(copy)}</p>'
        case Code(text=text):
            return f'<div class="copied"><pre>{_escaped(text)}</pre></div>'
        case Table():
            return table_element(block)
        case Bars():
            return table_element(_amounts(block))


def _command(copy: str) -> str:
    return f' <span class="copied"><code>{_escaped(copy)}</code></span>' if copy else ""


def _amounts(bars: Bars) -> Table:
    """Lengths as numbers: the pictures draw them."""
    rows = tuple((bar.label, bar.amount, bar.mark) for bar in bars.bars)
    return Table(columns=(Column(name=""), *_numbers("memory"), Column(name="")), rows=rows)


def _numbers(*titles: str) -> tuple[Column, ...]:
    return tuple(column for column in numbers(*titles) if isinstance(column, Column))


def table_element(table: Table) -> str:
    """A table that scrolls by itself where it is too wide; a long one opens when asked for."""
    columns = [*table.columns, *([Column(name="command")] if any(table.copies) else [])]
    head = "".join(
        f'<th scope="col"{_of(column)}>{_escaped(column.name)}</th>' for column in columns
    )
    rows = [
        _row(table.columns, row, copy if any(table.copies) else None)
        for row, copy in zip_longest(table.rows, table.copies, fillvalue="")
        if not isinstance(row, str)
    ]
    plain = [replace(column, code=False) for column in table.columns]
    foot = _row(plain, table.total, None) if table.total else ""
    body = f"<tbody>{''.join(rows)}</tbody>" + (f"<tfoot>{foot}</tfoot>" if foot else "")
    element = (
        f'<div class="table" tabindex="0"><table class="{table.tone}">'
        f"<thead><tr>{head}</tr></thead>{body}</table></div>"
    )
    if len(rows) <= _LONG:
        return element
    return f"<details><summary>{len(rows):,} rows</summary>{element}</details>"


def _row(columns: Sequence[Column], row: Sequence[str], copy: str | None) -> str:
    cells = "".join(
        f"<td{_of(column, cell)}>{_cell(column, cell)}</td>"
        for column, cell in zip(columns, row, strict=False)
    )
    return f"<tr>{cells}{'' if copy is None else f'<td>{_command(copy)}</td>'}</tr>"


def _cell(column: Column, text: str) -> str:
    return f"<code>{_escaped(text)}</code>" if column.code and text else _escaped(text)


def _of(column: Column, text: str = "") -> str:
    kind = "number" if column.number else "whole" if column.whole else ""
    kind = kind or ("long" if len(text) > _WIDE else "")
    return f' class="{kind}"' if kind else ""


def _escaped(text: str) -> str:
    return html.escape(text)
