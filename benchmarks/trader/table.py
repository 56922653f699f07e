"""The results as README.md beside this file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from memfit.units import format_bytes

MARGIN = 20.0  # points by which a trained policy must beat random actions


def write(results: Path) -> None:
    """Write the page from what has been measured."""
    parts = {file.stem: json.loads(file.read_text()) for file in sorted(results.glob("*.json"))}
    lines = [
        "# The trader system, measured",
        "",
        (
            "`python -m benchmarks.trader STAGE` measures these (`peaks`, `threads`, `growth`, "
            "`study`, `learning`, then `table`) on a machine with 2 cores and 24 GiB, CPU only. "
            "Each run is a process of its own; its peak is the PSS of its tree, looked at from "
            "outside, with pages of shared files counted once."
        ),
        *_peaks(parts["peaks"]),
        *_threads(parts["threads"]),
        *_growth(parts["growth"]),
        *_study(parts["study"]),
        *_learning(parts["learning"]),
    ]
    (results.parent / "README.md").write_text("\n".join(lines) + "\n")


def _peaks(found: list[dict[str, Any]]) -> list[str]:
    return [
        "",
        "## Peaks",
        "",
        (
            "Width 768, rollouts of 4,096 transitions, minibatches of 4,096; the last row has the "
            "defaults made to fit (width 128, minibatches of 512)."
        ),
        "",
        "| training | workers | threads | peak |",
        "|---|--:|--:|--:|",
        *(
            f"| {row['training']} | {row['workers']} | {row['threads']} "
            f"| {format_bytes(row['peak_bytes'])} |"
            for row in found
        ),
    ]


def _threads(found: dict[str, dict[str, int]]) -> list[str]:
    one, many = found["1"], found["12"]
    return [
        "",
        "## Threads",
        "",
        "A forward and a backward pass of one layer, by `torch.set_num_threads`:",
        "",
        "| torch's threads | threads of the process | reserved, writable | held |",
        "|--:|--:|--:|--:|",
        *(
            f"| {count} | {row['threads']} | {format_bytes(row['reserved'])} "
            f"| {format_bytes(row['held'])} |"
            for count, row in found.items()
        ),
        "",
        (
            f"{many['threads'] - one['threads']} more threads reserve "
            f"{format_bytes(many['reserved'] - one['reserved'])} more and hold "
            f"{format_bytes(many['held'] - one['held'])} more."
        ),
    ]


def _growth(found: dict[str, dict[str, Any]]) -> list[str]:
    described, fitted = found["described"], found["fitted"]
    return [
        "",
        "## An env that never says done",
        "",
        "| training | steps | peak | how it ended |",
        "|---|--:|--:|---|",
        (
            f"| as described | {described['steps']:,} | {format_bytes(described['peak_bytes'])} "
            f"| at its limit of 512 MiB; {described['bytes_a_step']:,} bytes a step |"
        ),
        (
            f"| made to fit | {fitted['steps']:,} | {format_bytes(fitted['peak_bytes'])} "
            f"| by itself: {fitted['said'][-2]} |"
        ),
    ]


def _study(found: dict[str, Any]) -> list[str]:
    return [
        "",
        "## A study in 1 GiB",
        "",
        "```",
        *found["said"],
        "```",
        "",
        (
            f"Its tree's peak, seen from outside: {format_bytes(found['peak_bytes'])} "
            f"({'within' if found['peak_bytes'] <= found['limit_bytes'] else 'OVER'} the limit)."
        ),
    ]


def _learning(found: dict[str, Any]) -> list[str]:
    said = found["said"]
    score = float(next(line for line in said if line.startswith("on held-out")).split()[-2])
    better = score - found["random_return"]
    return [
        "",
        "## Learning",
        "",
        "| on held-out prices, an episode of 168 hours | mean return |",
        "|---|--:|",
        f"| random actions | {found['random_return']:+.2f} % |",
        f"| buying all coins and holding | {found['hold_return']:+.2f} % |",
        f"| after {found['steps']:,} steps | {score:+.2f} % |",
        "",
        f"Seed 0, the defaults made to fit, {found['seconds']:.0f} s. Returns are logarithmic.",
        (
            f"Better than random by {better:.1f} points; asked: {MARGIN:.0f} "
            f"({'met' if better >= MARGIN else 'MISSED'})."
        ),
    ]
