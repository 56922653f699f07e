"""Write the benchmark's table from its results."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

GIB, MIB, KIB = 1 << 30, 1 << 20, 1 << 10
TARGET = Path(__file__).parent / "README.md"
MOST_AN_AGENT = 24 * KIB
MARGIN = 3.0  # metres by which a trained policy must beat random actions


def line(points: list[dict[str, Any]]) -> tuple[float, float]:
    """Least squares: the fixed part, and what each agent adds."""
    xs, ys = [p["agents"] for p in points], [p["peak_bytes"] for p in points]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    slope = sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / sum(
        (a - x) ** 2 for a in xs
    )
    return y - slope * x, slope


def write(results: Path) -> None:
    """Compose README.md."""
    parts = [HEAD]
    parts += [part(results) for part in (peaks, million, learning)]
    TARGET.write_text("\n".join(parts))


def load(results: Path, name: str) -> Any:
    """A stage's result, or None where it has not run."""
    file = results / f"{name}.json"
    return json.loads(file.read_text()) if file.exists() else None


def peaks(results: Path) -> str:
    """Both trainings over the number of agents."""
    found = load(results, "slopes")
    if found is None:
        return "## Peaks over agents\n\nNot measured yet: `make bench-scale`.\n"
    rows = [
        "## Peaks over agents",
        "",
        "| training | agents | peak | seconds |",
        "|---|--:|--:|--:|",
    ]
    for name, words in (("described", "as described"), ("fitted", "made to fit")):
        rows += [
            f"| {words} | {p['agents']:,} | {p['peak_bytes'] / MIB:,.0f} MiB | {p['seconds']} |"
            for p in found[name]
        ]
    described, fitted = line(found["described"]), line(found["fitted"])
    verdict = "met" if fitted[1] <= MOST_AN_AGENT else "**missed**"
    held = [(16 * GIB - fixed) / each for fixed, each in (described, fitted)]
    rows += [
        "",
        "| training | fixed | an agent | agents in 16 GiB |",
        "|---|--:|--:|--:|",
        (
            f"| as described | {described[0] / MIB:,.0f} MiB | {described[1] / MIB:.2f} MiB "
            f"| {held[0]:,.0f} |"
        ),
        (
            f"| made to fit | {fitted[0] / MIB:,.0f} MiB | {fitted[1] / KIB:.2f} KiB "
            f"| {held[1]:,.0f} |"
        ),
        "",
        f"Asked: at most {MOST_AN_AGENT / KIB:.0f} KiB an agent ({verdict}).",
        "",
    ]
    return "\n".join(rows)


def million(results: Path) -> str:
    """The run with a million agents."""
    found = load(results, "million")
    if found is None:
        return "## A million agents\n\nNot measured yet: `make bench-scale`.\n"
    per_gib = found["agents"] / (found["peak_bytes"] / GIB)
    row = (
        f"{found['agents']:,}",
        f"{found['peak_bytes'] / GIB:.2f} GiB",
        f"{per_gib:,.0f}",
        f"{found['seconds']:,.0f}",
        f"every {found['act_every']}th step",
        str(found["minibatches"]),
    )
    return MILLION.format(row=" | ".join(row), samples=f"{found['agents'] * 1000:,}", **found)


def learning(results: Path) -> str:
    """Whether it learns."""
    found = load(results, "learning")
    if found is None:
        return "## Learning\n\nNot measured yet: `make bench-scale`.\n"
    returns = [
        float(match[1])
        for text in found["said"]
        if (match := re.search(r"mean return ([+-][\d.]+) m", text))
    ]
    last = sum(returns[-5:]) / len(returns[-5:])
    better = last - found["random_return"]
    steps = found["agents"] * 100 * len(returns)
    rows = [
        "## Learning",
        "",
        "| | mean return (m nearer to the target in 10 s) |",
        "|---|--:|",
        f"| random actions | {found['random_return']:+.2f} |",
        f"| first iteration | {returns[0]:+.2f} |",
        f"| mean of the last 5 of {len(returns)} iterations | {last:+.2f} |",
        "",
        f"{found['agents']} agents, seed 0, {steps:,} steps, {found['seconds']:,.0f} s.",
        f"Better than random by {better:.2f} m; asked: {MARGIN:.0f} m"
        + (" (met)." if better >= MARGIN else " (**missed**)."),
        "",
    ]
    return "\n".join(rows)


MILLION = """\
## A million agents

| agents | peak | agents a GiB | seconds | the policy acts | minibatches of the update |
|--:|--:|--:|--:|---|--:|
| {row} |

All 100 steps of every agent are kept in full: {samples} sensor samples. To keep the run short, \
the policy is asked every {act_every}th step, between which a drone goes on with its last action, \
and the update is cut to {minibatches} minibatches. Neither changes what is held in memory.
"""

HEAD = """\
# Scale: the drone system as described and made to fit

`make bench-scale` measures these on a machine with 2 cores and 24 GiB, CPU only. Each run is a \
process of its own; its peak is its PSS, sampled from outside.
"""
