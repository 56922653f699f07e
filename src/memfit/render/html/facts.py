"""The head of a page: what it is about, and its main figures, with what is unattributed."""

from __future__ import annotations

import html
from collections.abc import Iterator

from memfit.errors import visible_line
from memfit.render.html.figure import Data
from memfit.units import format_bytes, format_change, shortened

# A key of the JSON, and how people call it. Most results have a few of them.
_FACTS = {
    "peak_bytes": "peak",
    "planned_bytes": "planned",
    "upper_bytes": "at most",
    "pss_bytes": "in memory now",
    "before_bytes": "before",
    "after_bytes": "after",
    "limit_bytes": "limit",
    "headroom_bytes": "still free",
    "peak_allocated_bytes": "most allocated",
    "peak_reserved_bytes": "most reserved",
    "bytes_per_env": "one more env",
    "unattributed_bytes": "unattributed",
}
_TITLE = 120


def page_title(data: Data) -> tuple[str, str]:
    """The command, and what it was about."""
    kind = {"recording": "run", "check-page": "check"}.get(str(data.get("kind")), data.get("kind"))
    return f"memfit {visible_line(str(kind))}", shortened(visible_line(_about(data)), _TITLE)


def _about(data: Data) -> str:
    if "before" in data and "after" in data:
        return f"{data['after']} against {data['before']}"
    targets = data.get("targets")
    # Targets of `watch` are figures to be met.
    if targets and isinstance(targets, list) and all(isinstance(one, str) for one in targets):
        return " ".join(targets)
    command = data.get("command")
    words = " ".join(map(str, command)) if isinstance(command, list) else str(command or "")
    names = ("target", "system", "snapshot", "plan", "title", "code")
    named = next((data[name] for name in names if isinstance(data.get(name), str)), "")
    if data.get("pid") and words:
        return f"{data['pid']}: {words}"
    return named or words


def facts(data: Data) -> str:
    """The main figures of a result."""
    found = list(_facts(data))
    if not found:
        return ""
    items = "".join(
        f"<div><dt>{html.escape(k)}</dt><dd>{html.escape(v)}</dd></div>" for k, v in found
    )
    return f'<dl class="facts">{items}</dl>'


def _facts(data: Data) -> Iterator[tuple[str, str]]:
    plan = data.get("plan")
    told = {**plan, **data} if isinstance(plan, dict) else data
    cards = list(data.get("devices") or ())
    told = {**cards[0], **told} if len(cards) == 1 else told
    for key, words in _FACTS.items():
        if type(told.get(key)) is int:
            source = told.get("limit_source") if key == "limit_bytes" else None
            yield f"{words} ({source})" if source else words, format_bytes(told[key])
    if type(told.get("grew_bytes")) is int:
        yield "change", format_change(told["grew_bytes"])
    if isinstance(told.get("named_share"), float):
        yield "has a name", f"{told['named_share']:.1%}"
