"""Neutral blocks: what a result says, before it becomes a terminal page, Markdown or HTML.

What they show was often written by others (command lines, names of shared memory, recordings), so
that every block makes control characters visible, whatever it becomes.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass
from enum import StrEnum

from memfit.errors import visible_line
from memfit.units import format_bytes


class Tone(StrEnum):
    """How a line is meant; a renderer may colour it."""

    PLAIN = "plain"
    GOOD = "good"
    BAD = "bad"
    MUTED = "muted"


@dataclass(frozen=True)
class Heading:
    """The title of what follows."""

    text: str

    def __post_init__(self) -> None:
        _show(self, text=visible_line(self.text))


@dataclass(frozen=True)
class PageTitle(Heading):
    """The title of a whole document."""


@dataclass(frozen=True)
class Text:
    """One sentence or more. The `verdict` is what a page says first.

    `copy` is a command that helps further, for where it can be copied.
    """

    text: str
    tone: Tone = Tone.PLAIN
    verdict: bool = False
    copy: str = ""

    def __post_init__(self) -> None:
        _show(self, text=visible_line(self.text), copy=visible_line(self.copy))


@dataclass(frozen=True)
class Code:
    """Lines to be copied as they are. `picture` is the one of a page that shows the same."""

    text: str
    picture: str = ""

    def __post_init__(self) -> None:
        _show(self, text="\n".join(map(visible_line, self.text.splitlines())))


@dataclass(frozen=True, kw_only=True)
class Column:
    """A table's column; numbers stand to the right, names and formulas are set as code.

    A column that is not `whole` may be broken into several lines.
    """

    name: str
    number: bool = False
    code: bool = False
    whole: bool = False

    def __post_init__(self) -> None:
        _show(self, name=visible_line(self.name))


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of text under named columns; `total` is a last row set apart.

    `copies` are commands that belong to the rows, for where they can be copied.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    total: tuple[str, ...] = ()
    tone: Tone = Tone.PLAIN
    copies: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _show(self, rows=tuple(tuple(map(visible_line, row)) for row in self.rows))
        _show(self, copies=tuple(map(visible_line, self.copies)))


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A labelled length between 0 and 1; `mark` says why one bar stands out."""

    label: str
    amount: str
    share: float
    mark: str = ""

    def __post_init__(self) -> None:
        _show(self, label=visible_line(self.label))


@dataclass(frozen=True, kw_only=True)
class Bars:
    """Lengths to compare. `picture` is the one of a page that shows the same."""

    bars: tuple[Bar, ...]
    picture: str = ""


def _show(block: object, **shown: object) -> None:
    """Put what may be shown in the place of what was given."""
    for name, value in shown.items():
        object.__setattr__(block, name, value)


Block = Heading | Text | Code | Table | Bars
Title = Column | str  # of a column; one that is only named is of plain text


def numbers(*titles: str) -> tuple[Title, ...]:
    """Columns of numbers."""
    return tuple(Column(name=title, number=True) for title in titles)


def names(title: str, *, whole: bool = True) -> Title:
    """A column of names or formulas."""
    return Column(name=title, code=True, whole=whole)


def section(
    title: str,
    columns: Iterable[Title],
    rows: Iterable[tuple[str, ...]],
    *,
    total: tuple[str, ...] = (),
    tone: Tone = Tone.PLAIN,
    copies: Iterable[str] = (),
) -> list[Block]:
    """A title, and a table where there are rows."""
    made = tuple(Column(name=c) if isinstance(c, str) else c for c in columns)
    table = Table(columns=made, rows=tuple(rows), total=total, tone=tone, copies=tuple(copies))
    return [Heading(title), table] if table.rows else [Heading(title)]


def bars(
    amounts: Iterable[tuple[str, int]], peaks: Container[int] = (), *, picture: str = ""
) -> Bars:
    """Amounts of memory as lengths; those at the positions of `peaks` are marked."""
    rows = list(amounts)
    top = max((amount for _, amount in rows), default=0) or 1
    return Bars(
        picture=picture,
        bars=tuple(
            Bar(
                label=label,
                amount=format_bytes(amount),
                share=amount / top,
                mark="the peak" if i in peaks else "",
            )
            for i, (label, amount) in enumerate(rows)
        ),
    )


def muted(texts: Iterable[str]) -> list[Block]:
    """Remarks, a line each."""
    return [Text(text, Tone.MUTED) for text in texts]
