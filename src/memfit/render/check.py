"""Findings of a check as blocks, as JSON, as SARIF and as annotations of GitHub."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote

from memfit.errors import visible_line
from memfit.model import Advice, Checked, Finding, Severity
from memfit.render.blocks import Block, Heading, Text, Tone, muted
from memfit.render.result_json import SCHEMA, picked
from memfit.units import format_bytes

_TONES = {Severity.ERROR: Tone.BAD, Severity.WARNING: Tone.PLAIN, Severity.INFO: Tone.PLAIN}
_CODE = re.compile(r"MF\d{3}")
_GITHUB = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
_SARIF = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def check_blocks(checked: Checked) -> list[Block]:
    """A line for each finding, its fix below it, and how many there are."""
    blocks: list[Block] = []
    for f in checked.findings:
        text = f"{f.where}: {f.severity} {f.code} {f.message}"
        blocks.append(Text(text, _TONES[f.severity], copy=explain_command(f.code)))
        blocks += muted([f"    fix: {f.fix}"] if f.fix else [])
    if checked.advice:
        blocks.append(Heading("What would save memory"))
        blocks += [Text(advice_line(a), copy=explain_command(a.code)) for a in checked.advice]
    tone = Tone.BAD if checked.findings else Tone.GOOD
    blocks.append(Text(_total(checked), tone, verdict=True))
    return blocks + muted(f"note: {note}" for note in checked.notes)


def explain_command(code: str) -> str:
    """What says more about a code; nothing where that is none of a check."""
    return f"memfit check --explain {code}" if _CODE.fullmatch(code) else ""


def advice_line(advice: Advice) -> str:
    """One change with what it saves, and whether training stays the same."""
    kept = training_word(advice)
    proved = ", measured" if advice.verified else ""
    return (
        f"{advice.code} saves {format_bytes(advice.saves_bytes)} ({kept}{proved}): {advice.change}"
        + (f"; {advice.costs}" if advice.costs else "")
    )


def training_word(advice: Advice) -> str:
    """Whether training stays the same: to the bit, or but for the order of sums."""
    if advice.to_rounding:
        return "same steps, rounded"
    return "safe" if advice.safe else "changes training"


def _total(checked: Checked) -> str:
    where = f"in {checked.files:,} file" + ("s" if checked.files != 1 else "")
    left = f"; {checked.ignored:,} ignored by comments" if checked.ignored else ""
    if not checked.findings:
        return f"Nothing found {where}{left}"
    parts = ", ".join(f"{count:,} {name}" for name, count in checked.counts.items())
    return f"{len(checked.findings):,} found {where}: {parts}{left}"


def check_json(checked: Checked) -> dict[str, Any]:
    """What `memfit check --format json` prints."""
    return {
        "schema": SCHEMA,
        "kind": "check",
        **picked(checked, "targets", "files", "ignored", "counts"),
        "findings": [
            picked(
                f, "code", "severity", "message", "where", "path", "line", "column", "fix", "bytes"
            )
            for f in checked.findings
        ],
        "advice": [advice_json(a) for a in checked.advice],
        "notes": list(checked.notes),
        "seconds": round(checked.seconds, 3),
    }


def advice_json(advice: Advice) -> dict[str, Any]:
    """One change as all commands print it."""
    words = ("code", "saves_bytes", "change", "safe", "to_rounding", "verified", "costs", "changes")
    return picked(advice, *words)


def check_github(checked: Checked) -> str:
    """Annotations that GitHub shows beside the lines of a change."""
    lines = []
    for f in checked.findings:
        place = f"file={_property(f.path or f.where)},line={f.line or 1},col={f.column or 1}"
        text = f"{f.message}. {f.fix}" if f.fix else f.message
        lines.append(f"::{_GITHUB[f.severity]} {place},title={f.code}::{_data(text)}")
    return "".join(f"{line}\n" for line in lines)


def check_sarif(checked: Checked) -> str:
    """SARIF 2.1.0, which code hosts and editors read."""
    rules = [
        {"id": code, "shortDescription": {"text": title}}
        for code, title in sorted(checked.titles.items())
    ]
    run = {
        "tool": {"driver": {"name": "memfit", "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(f) for f in checked.findings],
    }
    data = {"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(data, indent=2) + "\n"


def _result(f: Finding) -> dict[str, Any]:
    text = f"{f.message}. {f.fix}" if f.fix else f.message
    result: dict[str, Any] = {
        "ruleId": f.code,
        "level": _SARIF[f.severity],
        "message": {"text": visible_line(text)},
    }
    if f.path:
        place: dict[str, Any] = {"artifactLocation": {"uri": quote(f.path, errors="replace")}}
        if f.line:  # a recording has none
            place["region"] = {"startLine": f.line, "startColumn": f.column}
        result["locations"] = [{"physicalLocation": place}]
    else:
        result["locations"] = [{"logicalLocations": [{"fullyQualifiedName": f.where}]}]
    return result


def page_blocks(page: Any) -> list[Block]:
    """The page of one check."""
    blocks: list[Block] = [Heading(f"{page.code}: {page.title}"), Text(page.what), Text(page.why)]
    if page.off:
        blocks.append(Text(f"Off unless it is selected: {page.off}"))
    for title, code in (("Instead of", page.bad), ("write", page.good)):
        blocks.append(Heading(title))
        blocks += [Text(f"    {line}" if line else " ") for line in code.splitlines()]
    return blocks


def page_json(page: Any) -> dict[str, Any]:
    """The page of one check for programs."""
    names = (
        "code",
        "title",
        "what",
        "why",
        "bad",
        "good",
        "off",
        "in_text",
        "in_runs",
        "in_recordings",
    )
    return {"schema": SCHEMA, "kind": "check-page", **picked(page, *names)}


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
