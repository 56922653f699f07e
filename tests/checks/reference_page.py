"""The page of all checks, docs/checks.md, made of their docstrings."""

from __future__ import annotations

import inspect
import textwrap
from dataclasses import dataclass
from types import ModuleType

from memfit.checks import all_checks

_INTRODUCTION = """\
# Checks

What `memfit plan` looks for in a run. Findings have a code and a severity (info, warning, error);
savings are two ledgers subtracted, so `memfit plan` shows them in bytes for the run at hand. What
is about less than 1 % of the peak, or less than 8 MiB (two runs of the same small script differ by
that), is shown with `--all-findings` alone.

This page is made of the checks' own docstrings: `pytest tests/checks --renew` writes it anew.
"""


@dataclass(frozen=True, kw_only=True)
class Page:
    """What a check's docstring says, taken apart."""

    code: str
    title: str
    what: str
    why: str
    bad: str
    good: str


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
        title=title,
        what=_one_line(what),
        why=_one_line(why),
        bad=textwrap.dedent(bad).strip(),
        good=textwrap.dedent(good).strip(),
    )


def reference() -> str:
    """docs/checks.md."""
    pages = [page(check) for check in all_checks()]
    table = ["| code | finds that |", "| --- | --- |"]
    table += [f"| [{p.code}](#{p.code.lower()}) | {p.title.rstrip('.')} |" for p in pages]
    return "\n".join([_INTRODUCTION, *table, *map(_section, pages)])


def _section(p: Page) -> str:
    return f"""
## {p.code}

**{p.title}**

{p.what}

{p.why}

Instead of

```python
{p.bad}
```

write

```python
{p.good}
```
"""


def _one_line(text: str) -> str:
    return " ".join(text.split())
