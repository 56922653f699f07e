"""Neutral blocks: what a result says, before it becomes a terminal page, Markdown or HTML."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Tone(StrEnum):
    """How a line is meant; a renderer may colour it."""

    PLAIN = "plain"
    GOOD = "good"
    BAD = "bad"
    MUTED = "muted"


@dataclass(frozen=True, kw_only=True)
class Heading:
    """The title of what follows."""

    text: str


@dataclass(frozen=True, kw_only=True)
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
