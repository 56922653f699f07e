"""The blocks of code in README.md and docs/, and the commands that stand in them.

Before a block may stand `<!-- not run: reason -->`, or what it takes for granted:
`<!-- given` and lines of Python, or of the shell before commands, up to `-->`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
COMMANDS = {"bash", "console", "sh"}
PROGRAMS = {"git", "make", "memfit", "pip", "pytest", "python", "sacct"}
# A block, with the comment that may stand before it.
BLOCK = re.compile(
    r"(?:^ *<!-- (?P<kind>not run: |given\n)(?P<said>(?:(?!-->).)*?)\s*-->\n\s*?)?"
    r"^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, kw_only=True)
class Line:
    """A command, with what a page shows as its output."""

    command: str
    shown: str = ""


@dataclass(frozen=True, kw_only=True)
class Block:
    """A block of code of a page."""

    page: Path
    number: int
    language: str
    text: str
    not_run: str = ""
    given: str = ""

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.number}"

    @property
    def is_commands(self) -> bool:
        first = self.text.split(maxsplit=1)[:1]
        return self.language in COMMANDS or (not self.language and set(first) <= PROGRAMS)

    @property
    def lines(self) -> list[Line]:
        """Its commands, one each, continued lines joined."""
        if not self.is_commands:
            return []
        text = re.sub(r"\\\n\s*", "", self.text)
        if self.language != "console":
            return [Line(command=line) for line in text.splitlines() if line.split("#")[0].strip()]
        _, *parts = re.split(r"^\$ ", text, flags=re.MULTILINE)
        return [Line(command=c, shown=s) for c, _, s in (part.partition("\n") for part in parts)]


@cache
def pages() -> list[Path]:
    """README.md and docs/, but pages of checks, which tests/checks runs, and measured documents,
    which `memfit demo` writes."""
    written = {"checks", "measured"}
    found = [page for page in (ROOT / "docs").rglob("*.md") if page.parent.name not in written]
    return [ROOT / "README.md", *sorted(found)]


@cache
def blocks() -> list[Block]:
    """All blocks of all pages, in their order."""
    found = []
    for page in pages():
        text = page.read_text(encoding="utf-8")
        for match in BLOCK.finditer(text):
            said = {match["kind"]: dedent(match["said"] or "")}
            found.append(
                Block(
                    page=page,
                    number=text.count("\n", 0, match.start("language")) + 1,
                    language=match["language"],
                    text=dedent(match["text"]),
                    not_run=said.get("not run: ", ""),
                    given=said.get("given\n", ""),
                )
            )
    return found


def words_of_memfit(command: str) -> Iterator[list[str]]:
    """What stands after each `memfit` of a command line that starts one."""
    for part in re.split(r"\s(?:&&|\|\||[;|&])(?:\s|$)", f"{command} "):
        words = shlex.split(re.sub(r"\s\d?>.*", "", part), comments=True)
        if words[:1] == ["memfit"]:
            yield words[1:]
