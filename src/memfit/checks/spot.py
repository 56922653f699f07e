"""What a check finds in a text, and how a comment keeps it quiet."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from dataclasses import dataclass

from memfit.model import Severity

_IGNORE = re.compile(r"#\s*memfit:\s*ignore(?:\[([^\]]*)\])?", re.IGNORECASE)


@dataclass(frozen=True)
class Spot:
    """A node of the syntax tree at which something was found: what, and the edit that helps."""

    node: ast.AST
    message: str
    fix: str = ""
    severity: Severity | None = None  # where it is not that of the check


def lines_of(node: ast.AST) -> range:
    """The lines on which a comment about a node may stand; of a block, its first one."""
    first: int = getattr(node, "lineno", 1)
    last: int = getattr(node, "end_lineno", None) or first
    if isinstance(node, ast.stmt) and hasattr(node, "body"):
        last = first
    return range(first, last + 1)


def ignored_codes(text: str) -> dict[int, tuple[str, ...]]:
    """`# memfit: ignore[MF203, MF5]` by line; without brackets it is about every code ("")."""
    if "memfit:" not in text:
        return {}
    found: dict[int, tuple[str, ...]] = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT and (match := _IGNORE.search(token.string)):
                codes = match.group(1)
                found[token.start[0]] = (
                    ("",) if codes is None else tuple(c.strip().upper() for c in codes.split(","))
                )
    except (tokenize.TokenError, SyntaxError, IndentationError):
        return found
    return found
