"""Write the benchmark's table from its results."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

GIB, MIB = 1 << 30, 1 << 20
TARGET = Path(__file__).parent / "README.md"
MARGIN = 0.5  # by which a trained policy must beat random actions; a full bar of health is 1
NOT_YET = "\n\nNot measured yet: `make bench-fighter`.\n"


def write(results: Path) -> None:
    """Compose README.md."""
    parts = (peaks, whole, moments, processes, learning)
    TARGET.write_text("\n".join([HEAD, *(part(results) for part in parts)]))


def load(results: Path, name: str) -> Any:
    """A stage's result, or None where it has not run."""
    file = results / f"{name}.json"
    return json.loads(file.read_text()) if file.exists() else None


def mib(size: float) -> str:
    """In MiB, as people read it."""
    return f"{size / MIB:,.0f} MiB"


def peaks(results: Path) -> str:
    """Both trainings over rollout and minibatch."""
    found = load(results, "peaks")
    if found is None:
        return "## Peaks" + NOT_YET
    rows = [
        "## Peaks",
        "",
        "Two envs, two rollouts and updates of one epoch each; the whole process tree.",
        "",
        "| n_steps | batch_size | as described | made to fit | saved |",
        "|--:|--:|--:|--:|--:|",
    ]
    fitted = {key(one): one for one in found if one["training"] == "made to fit"}
    for one in found:
        if one["training"] == "as described":
            other = fitted[key(one)]
            more = "over " if one["stopped"] else ""
            saved = (one["peak_bytes"] - other["peak_bytes"]) / one["peak_bytes"]
            rows.append(
                f"| {one['n_steps']:,} | {one['batch_size']:,} | {more}{mib(one['peak_bytes'])} "
                f"| {mib(other['peak_bytes'])} | {more}{saved:.0%} |"
            )
    return "\n".join([*rows, ""])


def key(one: dict[str, Any]) -> tuple[int, int]:
    """What two runs are compared by."""
    return one["n_steps"], one["batch_size"]


def whole(results: Path) -> str:
    """The assessment's own settings, planned and run."""
    found = load(results, "whole")
    if found is None:
        return "## The assessment's own settings" + NOT_YET
    rows = [
        "## The assessment's own settings",
        "",
        (
            f"n_steps {found[0]['n_steps']:,} and batch_size {found[0]['batch_size']:,}: one "
            "rollout and one epoch, which hold as much as ten."
        ),
        "",
        "| training | planned | measured | seconds |",
        "|---|--:|--:|--:|",
    ]
    for one in found:
        measured = one["stopped"] or f"{one['peak_bytes'] / GIB:.2f} GiB"
        rows.append(
            f"| {one['training']} | {one['planned_bytes'] / GIB:.2f} GiB | {measured} "
            f"| {one['seconds']:,.0f} |"
        )
    return "\n".join([*rows, ""])


def moments(results: Path) -> str:
    """The main process over one iteration."""
    found = load(results, "moments")
    if found is None:
        return "## Moments of an iteration" + NOT_YET
    rows = [
        "## Moments of an iteration",
        "",
        (
            "The main process alone: the highest resident size up to the end of the rollout, in "
            "`swap_and_flatten`, and in the minibatches."
        ),
        "",
        "| training | n_steps | batch_size | observations | rollout | flatten | minibatches |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for one in found:
        marks = one["marks"]
        flatten = mib(marks["flatten"]) if "flatten" in marks else "no copy"
        rows.append(
            f"| {one['training']} | {one['n_steps']:,} | {one['batch_size']:,} "
            f"| {mib(one['observations'])} | {mib(marks['rollout'])} | {flatten} "
            f"| {mib(marks['minibatches'])} |"
        )
    rows += ["", f"Parameters: {found[0]['parameters']:,}.", ""]
    return "\n".join(rows)


def processes(results: Path) -> str:
    """What a worker is, and what the emulator is in it."""
    alone, found = load(results, "emulator"), load(results, "peaks")
    if alone is None or found is None:
        return "## Workers" + NOT_YET
    rows = ["## Workers", "", "| process | RSS | PSS |", "|---|--:|--:|"]
    rows += [
        f"| {name} | {mib(size['rss'])} | {mib(size['pss'])} |" for name, size in alone.items()
    ]
    for training in ("as described", "made to fit"):
        run = next(one for one in found if one["training"] == training)
        others = sorted(run["processes"], key=lambda one: one["pss"], reverse=True)[1:]
        for one in others:
            rows.append(
                f"| beside the main process, {training} | {mib(one['rss'])} | {mib(one['pss'])} |"
            )
    rows += [
        "",
        (
            "Beside the workers there is the process that they are forks of, and a tracker where "
            "Python's multiprocessing starts them."
        ),
        "",
    ]
    return "\n".join(rows)


def learning(results: Path) -> str:
    """Whether it learns."""
    found = load(results, "learning")
    if found is None:
        return "## Learning" + NOT_YET
    pattern = re.compile(r": ([\d,]+) steps, mean return ([+-][\d.]+)")
    matches = [match for text in found["said"] if (match := pattern.search(text))]
    random = sum(found["random_returns"]) / len(found["random_returns"])
    settings = ", ".join(f"{name} {value}" for name, value in found["settings"].items())
    rows = [
        "## Learning",
        "",
        (
            "The return of a match: a full bar of health is 1. A training's is the mean of the "
            "last 100 matches that ended."
        ),
        "",
        "| | mean return |",
        "|---|--:|",
        f"| random actions, {len(found['random_returns'])} matches | {random:+.2f} |",
    ]
    rows += [
        f"| after {match[1]} steps | {float(match[2]):+.2f} |"
        for match in (*matches[4:-1:10], matches[-1])
    ]
    better = float(matches[-1][2]) - random
    verdict = "met" if better >= MARGIN else "**missed**"
    rows += [
        "",
        (
            f"Settings: {settings}. Frames are grey and halved here, which is another, quicker "
            f"problem than that of the peaks above; {found['seconds']:,.0f} s."
        ),
        f"Better than random by {better:.2f}; asked: {MARGIN} ({verdict}).",
    ]
    if found["stopped"]:
        rows.append(f"The training did not come to its end: {found['stopped']}.")
    return "\n".join([*rows, ""])


HEAD = """\
# The fighter system as described and made to fit

`make bench-fighter` measures these on a machine with 2 cores and 24 GiB, CPU only. Each run is a \
process tree of its own; its peak is the sum of the PSS of all its processes, seen from outside. \
Other trainings ran on the machine at that time: of pages of torch's own files, which they share, \
each process counts a part only, and times are several times those of an idle machine.
"""
