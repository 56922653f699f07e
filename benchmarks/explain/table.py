"""Write the tables from the results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

MIB = 2**20


def write(results: Path, readme: Path) -> None:
    """All tables that have results."""
    parts = [INTRODUCTION]
    for stage, section in SECTIONS.items():
        file = results / f"{stage}.json"
        if file.exists():
            parts.append(section(json.loads(file.read_text())))
    readme.write_text("\n\n".join(parts) + "\n")


INTRODUCTION = """\
# Explanations of live processes

`make bench-explain` measures these on a machine with 2 cores. The programs are those of \
`tests/truth/live`; the sum of the rows stands beside the kernel's own sum of PSS over the \
process tree, read just before and just after."""


def _processes(found: list[dict[str, Any]]) -> str:
    rows = [
        f"| {r['name']} | {r['processes']} | {r['threads']} | {r['kernel_bytes'] / MIB:,.1f} | "
        f"{r['sum_bytes'] / r['kernel_bytes']:.2%} | {r['named_share']:.2%} | "
        f"{1000 * r['seconds']:.0f} |"
        for r in found
    ]
    worst = max(abs(r["sum_bytes"] / r["kernel_bytes"] - 1) for r in found)
    least = min(r["named_share"] for r in found)
    return "\n".join(
        [
            "## Sums and names",
            "",
            "| process | processes | threads | kernel's PSS, MiB | rows | named by layer | ms |",
            "|---|--:|--:|--:|--:|--:|--:|",
            *rows,
            "",
            (
                f"Asked: 12 processes, rows within 1 % (worst {worst:.2%}: {_met(worst <= 0.01)}), "
                f"at least 95 % named (least {least:.2%}: {_met(least >= 0.95)})."
            ),
        ]
    )


def _thousand(found: dict[str, Any]) -> str:
    alone, watched, listened = found["alone"], found["watched"], found["listened"]
    named = [("left alone", r) for r in alone]
    named += [("explained from outside", watched)]
    named += [("with the inside view", listened)] if listened else []
    rows = []
    for name, r in named:
        hold = r["longest_hold_seconds"]
        same = "same" if r["digest"] == alone[0]["digest"] else "CHANGED"
        rows.append(
            f"| {name} | {r['explanations']:,} | {r['exit_code']} | {same} | "
            f"{'' if hold is None else f'{1000 * hold:.0f}'} |"
        )
    right = watched["explanations"] >= 1000 and all(
        not r["exit_code"] and r["digest"] == alone[0]["digest"] for _, r in named
    )
    return "\n".join(
        [
            "## A thousand explanations of one training",
            "",
            "| PPO, CartPole | explanations | exit code | weights at the end | hold, ms |",
            "|---|--:|--:|---|--:|",
            *rows,
            "",
            "Explanations follow each other within 5 ms on the same 2 cores. Asked: 1,000 of them,",
            f"no death, no changed result ({_met(right)}).",
        ]
    )


def _large(found: dict[str, Any]) -> str:
    worst = max(found["seconds"])
    return (
        "## 20 GB\n\n"
        f"{found['pss_bytes'] / 1e9:.1f} GB of touched memory in pages of 4 KiB are explained in "
        f"{min(found['seconds']):.2f} to {worst:.2f} s. Asked: 5 s ({_met(worst <= 5)})."
    )


def _inside(found: list[dict[str, Any]]) -> str:
    rows = []
    for r in found:
        top = ", ".join(f"`{path}` {amount / MIB:,.1f}" for path, amount in r["holders"])
        rows.append(
            f"| {r['name']} | {r['held_share']:.1%} | {_share(r.get('first_held_share'))} | "
            f"{_dropped(r)} | {r['seconds']:.2f} | "
            f"{1000 * r['longest_hold_seconds']:.0f} | {top} |"
        )
    return "\n".join(
        [
            "## The inside view",
            "",
            (
                "| process | private memory with a holder | in the first reading | readings "
                "dropped | slowed down, s | longest hold, ms | largest holders, MiB |"
            ),
            "|---|--:|--:|--:|--:|--:|---|",
            *rows,
            "",
            READINGS,
        ]
    )


def _systems(found: list[dict[str, Any]]) -> str:
    rows = []
    for r in found:
        shares, seconds = r["held_shares"], r["seconds"]
        way = "as described" if r["described"] else "made to fit"
        rows.append(
            f"| {r['name']}, {way} | {max(r['pss_bytes']) / MIB:,.0f} | {len(shares)} | "
            f"{min(shares):.1%} | {max(shares):.1%} | "
            f"{_share(min(r.get('first_held_shares', ()), default=None))} | {_dropped(r)} | "
            f"{min(seconds):.0f} to {max(seconds):.0f} | "
            f"{1000 * r['longest_hold_seconds']:.0f} |"
        )
    least = {
        described: min(min(r["held_shares"]) for r in found if r["described"] is described)
        for described in (False, True)
    }
    return "\n".join(
        [
            "## The reference systems while they train",
            "",
            (
                "Each is asked again and again, 20 seconds after its start, in rollouts and in "
                "updates as they come, all its processes with it, on the same 2 cores that it "
                "trains on."
            ),
            "",
            (
                "| system | PSS, MiB | times | private memory with a holder: least | most | "
                "least in first readings | readings dropped | s | longest hold, ms |"
            ),
            "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
            *rows,
            "",
            READINGS,
            "",
            (
                f"Asked: at least 90 % (made to fit, least {least[False]:.1%}: "
                f"{_met(least[False] >= 0.9)}; as described, least {least[True]:.1%}: "
                f"{_met(least[True] >= 0.9)})."
            ),
        ]
    )


READINGS = (
    "Where much has no holder, a process is read up to four times and the reading that leaves the "
    "least without one is kept; what the first alone would have said stands beside it."
)


def _share(share: float | None) -> str:
    return "not measured" if share is None else f"{share:.1%}"


def _dropped(r: dict[str, Any]) -> str:
    """How many readings were dropped of all; one figure, or one for each time."""
    if "dropped" not in r:
        return "not measured"
    dropped, taken = (sum(x) if isinstance(x, list) else x for x in (r["dropped"], r["readings"]))
    return f"{dropped} of {taken}"


def _met(met: bool) -> str:
    return "met" if met else "MISSED"


SECTIONS = {
    "processes": _processes,
    "inside": _inside,
    "systems": _systems,
    "thousand": _thousand,
    "large": _large,
}
