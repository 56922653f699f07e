"""The results as README.md beside this file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from memfit.units import format_bytes

_LATER = "not measured yet"


def write(results: Path) -> None:
    """Write the page from what has been measured."""
    parts = {file.stem: json.loads(file.read_text()) for file in sorted(results.glob("*.json"))}
    lines = [
        "# Studies within a limit of memory",
        "",
        (
            "`make bench-cluster` measures this: an Optuna study of PPO (stable-baselines3) on an "
            "env whose observations take 1 MiB and whose steps wait 4 ms for a simulator, so that "
            "memory is what is short. `fit` runs as many trials as fit by their upper bounds; "
            "`worst-case share` gives each the whole limit, and runs one after another. Both prune "
            "by plan, and have the same configurations. On a machine with 2 cores and 24 GiB."
        ),
        *_studies(parts),
        *_asked(parts),
        *_on_nodes(parts),
    ]
    (results.parent / "README.md").write_text("\n".join(lines) + "\n")


def _studies(parts: dict[str, Any]) -> list[str]:
    rows = []
    for stage, name in (("fit", "fit"), ("worst", "worst-case share")):
        if stage not in parts:
            continue
        found = parts[stage]
        states = [trial["state"] for trial in found["trials"]]
        rows.append(
            f"| {name} | {len(states)} | {states.count('COMPLETE')} | {states.count('PRUNED')} "
            f"| {states.count('FAIL')} | {found['most_at_once']} | {found['seconds']:.0f} s "
            f"| {3600 * len(states) / found['seconds']:.0f} | {format_bytes(found['most_bytes'])} "
            f"| {found['load']:.0f} |"
        )
    if not rows:
        return ["", "The studies in 4 GiB: not measured yet."]
    return [
        "",
        (
            "| study in 4 GiB | trials | complete | pruned | failed | at once | time | an hour "
            "| most held | load of the machine |"
        ),
        "| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: |",
        *rows,
    ]


def _asked(parts: dict[str, Any]) -> list[str]:
    if "fit" not in parts or "asks" not in parts:
        return ["", "What is asked of these studies: not measured yet."]
    fit, asks = parts["fit"], parts["asks"]
    times = (
        f"{parts['worst']['seconds'] / fit['seconds']:.2f} times" if "worst" in parts else _LATER
    )
    trials = fit["trials"]
    killed = sum(trial["verdict"] == "out of memory" for trial in trials)
    stopped = sum(trial["verdict"] == "over its share" for trial in trials)
    doubt = sum((trial["verdict"] or "").startswith("in doubt") for trial in trials)
    over = [
        trial["peak_bytes"] / trial["planned_bytes"] - 1
        for trial in trials
        if trial["state"] == "COMPLETE" and trial["peak_bytes"]
    ]
    large = sum(trial["state"] == "PRUNED" for trial in trials) / len(trials)
    lines = [
        "",
        "| asked | measured |",
        "| --- | --- |",
        f"| 40 % of the configurations do not fit | {large:.0%} |",
        f"| no trial killed by the system | {killed} |",
        f"| none stopped above its share | {stopped} |",
        (
            f"| 80 % of the limit used while trials wait | shares given: {fit['given_share']:.0%}; "
            f"held on average, while rollouts fill: {fit['held_share']:.0%} |"
        ),
        f"| 1.8 times the trials an hour | {times} |",
        (
            f"| 1,000 configurations asked a second | {asks['asks'] / asks['seconds']:,.0f} "
            f"({asks['asks'] / asks['processor_seconds']:,.0f} a second of the processor), of "
            f"{asks['surveys']} surveys |"
        ),
        (
            f"| planned peak beside the measured | {min(over):+.1%} to {max(over):+.1%} of "
            f"{len(over)} runs; {doubt} in doubt ran alone |"
        ),
    ]
    fitted = _LATER
    if "alone" in parts:
        ran = [trial for trial in parts["alone"] if trial["state"] == "COMPLETE"]
        would = sum(trial["peak_bytes"] <= fit["limit_bytes"] for trial in ran)
        fitted = f"{would} of {len(ran)} that were run alone, with three times the limit"
    return [*lines, f"| none pruned that would have fitted | {fitted} |"]


def _on_nodes(parts: dict[str, Any]) -> list[str]:
    rows = [
        _node_row(name, parts[stage])
        for stage, name in (("ray-fit", "by plan"), ("ray-worst", "a whole node each"))
        if stage in parts
    ]
    lines = [
        "",
        "## On three Ray nodes of 2 GiB",
        "",
        (
            "The same training as trials of Tune, with `n_steps` up to 2,240, on three nodes on "
            "loopback of one machine. `given` is what Ray had given away, `held` what the nodes' "
            "processes held, both of 6 GiB on average while a trial waited."
        ),
        "",
        (
            "| study | trials | complete | refused | failed | over demand | time | an hour | given "
            "| held | planned bound above the peak | load of the machine |"
        ),
        "| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |",
        *rows,
    ]
    if not rows:
        lines = [*lines[:5], "The studies: not measured yet."]
    if "ray-fit" in parts and "ray-worst" in parts:
        times = parts["ray-worst"]["seconds"] / parts["ray-fit"]["seconds"]
        lines += ["", f"By plan: {times:.2f} times the trials an hour of a whole node each (1.8)."]
    if "ray-kill" in parts:
        nodes, alone = parts["ray-kill"]["nodes"], parts["ray-kill"]["alone"]
        apart = max(
            abs(a["peak_bytes"] - b["peak_bytes"]) for a, b in zip(nodes, alone, strict=False)
        )
        same = [p["value"] for p in nodes] == [p["value"] for p in alone]
        lines += [
            "",
            (
                f"A sweep of {len(alone)} values with a node killed in its middle: "
                f"{len(nodes)} of {len(alone)} points, "
                f"{'the same values' if same else 'OTHER VALUES'}, peaks at most "
                f"{format_bytes(apart)} apart from those alone."
            ),
        ]
    return lines


def _node_row(name: str, found: dict[str, Any]) -> str:
    trials = found["trials"]
    done = [trial for trial in trials if trial["ended"] == "complete"]
    refused = sum(trial["refused"] for trial in trials)
    failed = found["asked"] - len(done) - refused
    over = sum(trial["over_demand"] for trial in trials)
    above = [t["demand_bytes"] / t["peak_bytes"] - 1 for t in done if t["peak_bytes"]]
    bound = f"{min(above):+.1%} to {max(above):+.1%}" if above else _LATER
    return (
        f"| {name} | {found['asked']} | {len(done)} | {refused} | {failed} | {over} "
        f"| {found['seconds']:.0f} s | {3600 * len(done) / found['seconds']:.0f} "
        f"| {found['given_share']:.0%} | {found['held_share']:.0%} | {bound} "
        f"| {found['load']:.0f} |"
    )
