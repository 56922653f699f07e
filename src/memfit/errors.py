"""Everything memfit raises on purpose.

MemfitError                 any of the below; `exit_code` is what the command line returns
├── UsageError         (2)  a wrong option, file, spec key or value
│   ├── SpecError      (2)  a run spec that cannot be read
│   ├── MissingExtra   (2)  an optional library that the target needs is not installed
│   └── Unsupported    (2)  a library, algorithm or platform that memfit does not know
├── NeverLearned       (2)  the target ended, or hung, without starting to learn
├── TargetFailed       (1)  the target's own code raised; its traceback is in `output`
└── OverLimit          (3)  this process and those below it hold more than they may

Every message says what was wrong, where, and ends with what to do. Names, paths and words of others
are a part of many: what would move a terminal's cursor is shown instead of done (`visible`).
"""

from __future__ import annotations

import re
import textwrap

# Control characters, those that turn the direction of writing, ends of lines that only some know,
# and halves of characters, which no file can take. Tabs and ends of lines are text.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


class MemfitError(Exception):
    """The base of all errors that memfit raises on purpose."""

    exit_code = 2

    def __init__(self, message: str, *, output: str = "") -> None:
        super().__init__(visible(message))
        self.output = output


class UsageError(MemfitError):
    """A wrong option, file or value."""


class SpecError(UsageError):
    """A run spec that cannot be read."""


class MissingExtra(UsageError):
    """An optional library that the target needs is not installed."""


class Unsupported(UsageError):
    """A library, algorithm or platform that memfit does not know."""


class NeverLearned(MemfitError):
    """The target ended, or hung, without starting to learn."""


class TargetFailed(MemfitError):
    """The target's own code raised."""

    exit_code = 1


class OverLimit(MemfitError):
    """This process and those below it hold more than they may."""

    exit_code = 3


def one_line(error: BaseException) -> str:
    """What an exception says, as a part of a message."""
    return textwrap.shorten(f"{type(error).__name__}: {error}", 300).rstrip(".")


def visible(text: str) -> str:
    """Text with control characters shown as Python writes them: `\\x1b` for an escape."""
    return _HIDDEN.sub(lambda found: found.group().encode("unicode_escape").decode(), text)


def visible_line(text: str) -> str:
    """The same in one line: for names and cells of tables, which end where they seem to end."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")
