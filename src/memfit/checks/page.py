"""A check's page: what its docstring says, taken apart."""

from __future__ import annotations

import inspect
import textwrap
from dataclasses import dataclass
from types import ModuleType


@dataclass(frozen=True, kw_only=True)
class Page:
    """What a check's docstring says. `off` is why it is off by default; empty if it is on."""

    code: str
    title: str
    what: str
    why: str
    bad: str
    good: str
    off: str
    in_text: bool
    in_runs: bool
    in_recordings: bool


def page(check: ModuleType) -> Page:
    """Read a check's docstring; its parts stand in a fixed order."""
    text = inspect.cleandoc(check.__doc__ or "")
    head, _, rest = text.partition("\n\nWhat: ")
    what, _, rest = rest.partition("\n\nWhy: ")
    why, _, rest = rest.partition("\n\nBad:\n")
    bad, _, good = rest.partition("\n\nGood:\n")
    code, _, title = head.partition(": ")
    return Page(
        code=code,
        title=_one_line(title),
        what=_one_line(what),
        why=_sentence(why),
        bad=textwrap.dedent(bad).strip(),
        good=textwrap.dedent(good).strip(),
        off=getattr(check, "OFF", ""),
        in_text=hasattr(check, "find_in_source"),
        in_runs=hasattr(check, "find"),
        in_recordings=hasattr(check, "find_in_recording"),
    )


def _sentence(text: str) -> str:
    """In one line, and with a capital: it stands apart from the word that it followed."""
    line = _one_line(text)
    return line[:1].upper() + line[1:]


def _one_line(text: str) -> str:
    return " ".join(text.split())
