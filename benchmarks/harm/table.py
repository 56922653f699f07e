"""The committed table of the benchmark, from its results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FAULTS, EXPLANATIONS = 40, 1000
INTRODUCTION = """\
# Harm

`make test-harm` lets things go wrong around a seeded training and counts what becomes of it. \
Counts only: times are bounds, and generous ones.
"""


def write(results: Path, place: Path) -> bool:
    """Write the table of all results that there are; whether all is well."""
    parts, well = [INTRODUCTION], True
    sections = (("faults", _faults), ("explanations", _explanations), ("fuzz", _fuzz))
    for name, section in sections:
        file = results / f"{name}.json"
        if file.exists():
            text, met = section(json.loads(file.read_text()))
            parts.append(text)
            well = well and met
    place.write_text("\n".join(parts))
    return well


def _met(yes: bool) -> str:
    return "met" if yes else "MISSED"


def _faults(found: Sequence[Mapping[str, Any]]) -> tuple[str, bool]:
    lines = [
        "## Faults",
        "",
        "A training (of numpy, torch or stable-baselines3, from the same seed again and again)",
        "runs under `memfit run` and tells its phases by `memfit.track()`, or has that alone;",
        "while the fault is there, it is explained from outside and inside and watched. Well:",
        "every repetition ended with the parameters, and the program with the exit code, that they",
        "have without memfit; no step took longer than the pause (the whole machine's, others",
        "compute too); no process, file, shared memory or control group is left; nobody said a",
        "traceback.",
        "",
        "| fault | training | repetitions | pause, s | outcome |",
        "|---|---|--:|--:|---|",
    ]
    for row in found:
        outcome = "; ".join(row.get("wrong", [])) or "well"
        if "not_here" in row:
            outcome = f"could not be injected here: {row['not_here']}"
        said = outcome.replace("|", "\\|").replace("\n", " ")[:300]
        pause = f"{row['pause']:g}" if "pause" in row else ""
        lines.append(
            f"| {row['name']} | {row['kind']} | {row.get('cycles', '')} | {pause} | {said} |"
        )
    injected = [row for row in found if "not_here" not in row]
    well = [row for row in injected if not row["wrong"]]
    met = len(well) == len(injected) >= FAULTS
    counts = f"{len(injected)} injected, {len(well)} well"
    counts += f", {len(found) - len(injected)} could not be injected here"
    looks = [look["code"] for row in injected for look in row.get("looks", {}).values()]
    refused = sum(code == 2 for code in looks)
    lines += ["", f"{len(looks)} looks meanwhile; {refused} were refused in words (exit code 2)."]
    lines += ["", f"Asked: at least {FAULTS} faults, all well: {_met(met)} ({counts}).\n"]
    return "\n".join(lines), met


def _explanations(found: Sequence[Mapping[str, Any]]) -> tuple[str, bool]:
    lines = [
        "## Explanations with the inside view",
        "",
        "One in ten also follows the pointers of C and C++.",
        "",
        "| training | asked | told | repetitions | died | changed |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for row in found:
        if "asked" not in row:
            lines.append(f"| {row['kind']} | {row.get('not_here') or 'MISSED'} | | | | |")
            continue
        lines.append(
            f"| {row['kind']} | {row['asked']:,} | {row['told']:,} | {row['cycles']:,} | "
            f"{int(row['died'])} | {int(not row['same'])} |"
        )
    ran = [row for row in found if "asked" in row]
    harmless = all(row["same"] and not row["died"] for row in ran)
    harmless = harmless and not any("harm" in row for row in found)
    told = sum(row["told"] for row in ran)
    met = harmless and told >= EXPLANATIONS
    lines += [
        "",
        f"Asked: {EXPLANATIONS:,}, no death, no changed result: {_met(met)} ({told:,} told).\n",
    ]
    return "\n".join(lines), met


def _fuzz(found: Mapping[str, Mapping[str, Any]]) -> tuple[str, bool]:
    lines = [
        "## Files, answers and words of a generator",
        "",
        "Seeds and a generator in `tests/`, no files. A number is the exit code of a command;",
        "every tenth recording is given to all seven commands that read one, any other to one.",
        "",
        "| what | how many | outcomes | tracebacks, wrong data |",
        "|---|--:|---|---|",
    ]
    for name, row in found.items():
        outcomes = ", ".join(f"{key}: {value:,}" for key, value in row["outcomes"].items())
        lines.append(
            f"| {name} | {row['count']:,} | {outcomes} | {row['failed'][:300] or 'none'} |"
        )
    met = not any(row["failed"] for row in found.values())
    lines += ["", f"Asked: no traceback, no wrong data ({_met(met)}).\n"]
    return "\n".join(lines), met
