"""The pages of all checks, docs/checks.md and docs/checks/, made of their docstrings."""

from __future__ import annotations

from memfit.checks import FAMILIES, all_checks
from memfit.checks.page import Page, page

_INTRODUCTION = """\
# Checks

What `memfit check` looks for in scripts and recordings, and `memfit plan` and `memfit check --run`
in a run. Findings have a code and a severity (info, warning, error). Codes from 001 to 012 are
older than families: storage has 1xx, updates 2xx, logic 3xx, processes 4xx, environments 5xx.
*text* checks read a script without running it; *run* checks look at a planned run, whose savings
are two ledgers subtracted; *recording* checks say what a recording of `memfit run` proves. What is
about less than 1 % of the peak of a run, or less than 8 MiB (two runs of the same small script
differ by that), is shown by `memfit plan --all-findings` alone.

What stands in a unit test (`test_...()`, a class of tests) is passed over: it lives no longer.

`memfit check --explain MF203` shows one page. A comment `# memfit: ignore[MF203]` on a line keeps
it quiet there. Settings stand in pyproject.toml:

```toml
[tool.memfit]
select = ["MF1", "MF2"]     # codes or their beginnings; all that are on if there is none
ignore = ["MF115"]
exclude = ["old/*"]         # files of directories
fail-on = "warning"         # exit code 5 from there on: info, warning, error or never
```

These pages are made of the checks' own docstrings: `pytest tests/checks --renew` writes them anew.
"""


def reference() -> dict[str, str]:
    """docs/checks.md and a page for each check, by their paths in docs."""
    pages = [page(check) for check in all_checks()]
    families = {check.CODE: check.__name__.split(".")[-2] for check in all_checks()}
    parts = [_INTRODUCTION]
    for family in FAMILIES:
        parts += [f"## {family.capitalize()}", "", "| code | finds that | reads |"]
        parts.append("| --- | --- | --- |")
        parts += [_row(p) for p in pages if families[p.code] == family]
        parts.append("")
    found = {"checks.md": "\n".join(parts)}
    return found | {f"checks/{p.code}.md": _page(p) for p in pages}


def _row(p: Page) -> str:
    kinds = ("text", p.in_text), ("run", p.in_runs), ("recording", p.in_recordings)
    reads = ", ".join(word for word, there in kinds if there)
    off = " (off unless selected)" if p.off else ""
    return f"| [{p.code}](checks/{p.code}.md) | {p.title.rstrip('.')}{off} | {reads} |"


def _page(p: Page) -> str:
    off = f"\nOff unless it is selected: {p.off}.\n" if p.off else ""
    return f"""\
# {p.code}

**{p.title}**
{off}
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
