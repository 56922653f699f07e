"""Neutral blocks: what a result says, before it becomes a terminal page, Markdown or HTML."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

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


@dataclass(frozen=True)
class Text:
    """One sentence or more."""

    text: str
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, kw_only=True)
class Column:
    """A table's column; numbers stand to the right, names and formulas are set as code.

    A column that is not `whole` may be broken into several lines.
    """

    name: str
    number: bool = False
    code: bool = False
    whole: bool = False


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of text under named columns; `total` is a last row set apart."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    total: tuple[str, ...] = ()
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A labelled length between 0 and 1; `mark` says why one bar stands out."""

    label: str
    amount: str
    share: float
    mark: str = ""


@dataclass(frozen=True, kw_only=True)
class Bars:
    """Lengths to compare."""

    bars: tuple[Bar, ...]


Block = Heading | Text | Table | Bars


def words(*titles: str) -> tuple[Column, ...]:
    """Columns of plain text."""
    return tuple(Column(name=title) for title in titles)


def numbers(*titles: str) -> tuple[Column, ...]:
    """Columns of numbers."""
    return tuple(Column(name=title, number=True) for title in titles)


def names(title: str) -> Column:
    """A column of names, which are not broken."""
    return Column(name=title, code=True, whole=True)


def section(
    title: str,
    columns: Iterable[Column],
    rows: Iterable[tuple[str, ...]],
    *,
    total: tuple[str, ...] = (),
) -> list[Block]:
    """A table under its title."""
    return [Heading(title), Table(columns=tuple(columns), rows=tuple(rows), total=total)]


def bars(amounts: Iterable[tuple[str, int]], marked: str = "") -> Bars:
    """Amounts of memory as lengths; the one with the label `marked` is the peak."""
    rows = list(amounts)
    top = max((amount for _, amount in rows), default=0) or 1
    return Bars(
        bars=tuple(
            Bar(
                label=label,
                amount=format_bytes(amount),
                share=amount / top,
                mark="the peak" if label == marked else "",
            )
            for label, amount in rows
        )
    )


def muted(texts: Iterable[str]) -> list[Block]:
    """Remarks, a line each."""
    return [Text(text, Tone.MUTED) for text in texts]
