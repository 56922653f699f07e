"""Write the benchmark's tables from its results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

MIB, KIB = 1 << 20, 1 << 10
TARGET = Path(__file__).parent / "README.md"
MARGIN = 2.0  # by which a trained policy must beat random actions

WORDS = {
    "described": "as described",
    "views": "pixels as views, no copy of the last observation",
    "reuse": "arrays of observations reused",
    "one_grey": "one grey conversion an observation",
    "one_stabilisation": "one stabilisation an observation",
    "patches": "only what is seen is drawn, in grey",
    "float32_state": "float32 state",
    "shared_levels": "level data shared",
    "shared_graphs": "graphs shared",
    "lazy_graphs": "graphs built when asked for",
    "sparse_entities": "only mines that are there",
    "shared_spaces": "one observation space for all",
    "no_animation": "no animation surfaces",
    "fitted": "**made to fit**",
    "numbered": "**made to fit, the level's number instead of its graph**",
}


def write(results: Path) -> None:
    """Compose README.md."""
    parts = [HEAD]
    for title, name, make in (
        ("What an environment costs", "costs", costs),
        ("What each change is needed for", "without", without),
        ("Environments in processes of their own", "workers", workers),
        ("Whole trainings", "training", training),
        ("Profilers", "profiler", profiler),
        ("Learning", "learning", learning),
    ):
        file = results / f"{name}.json"
        text = "Not measured yet: `python -m benchmarks.ninja " + name + "`.\n"
        if file.exists():
            text = make(json.loads(file.read_text()))
        parts.append(f"## {title}\n\n{text}")
    TARGET.write_text("\n".join(parts))


def size(count: float) -> str:
    """Bytes as MiB, or KiB where they are few."""
    return f"{count / MIB:,.2f} MiB" if abs(count) >= MIB / 2 else f"{count / KIB:,.1f} KiB"


def costs(found: dict[str, Any]) -> str:
    """Both versions, and each change alone."""
    rows = []
    for kind, title in (("plain", "Graphs are not observed"), ("graphs", "Graphs are observed")):
        described = found[kind]["described"]["env_bytes"]
        seen = found[kind]["described"]["observation_bytes"]
        rows += [
            f"{title}; an observation has {seen:,} bytes as described:",
            "",
            "| | an environment | saves |",
            "|---|--:|--:|",
        ]
        for name, one in found[kind].items():
            saved = described - one["env_bytes"]
            rows.append(
                f"| {WORDS[name]} | {size(one['env_bytes'])} | "
                f"{'' if name == 'described' else size(saved)} |"
            )
        rows.append("")
    few, many = found["plain"]["described"]["n_envs"]
    rest = "{} and {}".format(*found["plain"]["fitted"]["n_envs"])
    spread = {
        kind: size(max(all_of) - min(all_of))
        for kind, values in found["repeats"].items()
        for all_of in [[found[kind]["described"]["env_bytes"], *values]]
    }
    rows += [COSTS.format(few=few, many=many, rest=rest, **spread), ""]
    return "\n".join(rows)


def without(found: dict[str, Any]) -> str:
    """All changes but one."""
    least = found["fitted"]["env_bytes"]
    rows = ["| made to fit, but without | an environment | more |", "|---|--:|--:|"]
    for name, one in found.items():
        if name == "fitted":
            rows.append(f"| nothing left out | {size(one['env_bytes'])} | |")
        else:
            more = size(one["env_bytes"] - least)
            rows.append(f"| {WORDS[name]} | {size(one['env_bytes'])} | {more} |")
    few, many = found["fitted"]["n_envs"]
    rows += ["", f"Graphs are not observed; {few} and {many} environments. {WITHOUT}", ""]
    return "\n".join(rows)


def workers(found: dict[str, Any]) -> str:
    """Per-process costs."""
    rows = ["| | started by | an environment and its process |", "|---|---|--:|"]
    for name, one in found.items():
        way, method = name.split()
        rows.append(f"| {WORDS[way]} | {method} | {size(one['env_bytes'])} |")
    few, many = next(iter(found.values()))["n_envs"]
    rows += ["", f"PSS of the whole tree with {few} and {many} workers of SubprocVecEnv.", ""]
    return "\n".join(rows)


def training(found: dict[str, Any]) -> str:
    """Peaks of trainings."""
    rows = ["| training | environments | peak | an environment |", "|---|--:|--:|--:|"]
    for name, points in found.items():
        first, last = points[0], points[-1]
        each = (last["peak_bytes"] - first["peak_bytes"]) / (last["n_envs"] - first["n_envs"])
        way, *graphs = name.split()
        words = WORDS[way] + (", with graphs" if graphs else "")
        for point in points:
            tail = size(each) if point is last else ""
            rows.append(f"| {words} | {point['n_envs']} | {size(point['peak_bytes'])} | {tail} |")
    rows += [
        "",
        TRAINING,
        "",
    ]
    return "\n".join(rows)


def profiler(found: list[dict[str, Any]]) -> str:
    """Growth of a profiled process."""
    words = {
        "none": "no profiler",
        "kept": "every tracemalloc snapshot kept",
        "readings": "memfit profile",
    }
    rows = ["| profiler | snapshots | the process grew by |", "|---|--:|--:|"]
    for one in found:
        count = "" if one["way"] == "none" else f"{one['snapshots']:,}"
        rows.append(f"| {words[one['way']]} | {count} | {size(one['grown_bytes'])} |")
    rows += ["", "One environment made to fit, 2,000 frames of random actions.", ""]
    return "\n".join(rows)


def learning(found: dict[str, Any]) -> str:
    """Whether it learns."""
    drawn, learned = found["random"]["mean"], found["learned"]["mean"]
    better = learned - drawn
    error = [found[way]["deviation"] / found["episodes"] ** 0.5 for way in ("random", "learned")]
    rows = [
        "| | mean return |",
        "|---|--:|",
        f"| random actions | {drawn:+.2f} ± {error[0]:.2f} |",
        f"| first rollouts of the training | {found['rollouts'][1]['mean_return']:+.2f} |",
        f"| after {found['steps']:,} steps | {learned:+.2f} ± {error[1]:.2f} |",
        "",
        f"Level {found['level']}, at most {found['max_steps']} steps an episode, 8 environments, "
        f"seed {found['seed']}, made to fit; {found['episodes']} episodes each afterwards. "
        f"{found['cpu_seconds']:,.0f} s of processor time. "
        f"Better than random by {better:.2f}; asked: {MARGIN:.1f}"
        + (" (met)." if better >= MARGIN else " (**missed**)."),
        "",
    ]
    return "\n".join(rows)


TRAINING = """\
Level climb, 16 steps a rollout, two rollouts; minibatches of 64, with graphs of 8. Peaks of the \
process's PSS, sampled from outside. With 2 environments a rollout has only 32 samples, and so has \
the minibatch: that is most of the difference between 2 and 8 environments that are made to fit."""

COSTS = """\
As described, and for each change: {few} and {many} environments. Made to fit: {rest}. A change \
alone may be hidden by another cost that stays, so the savings do not add up. As described, \
temporary arrays of megabytes come and go at every step, and what the process keeps of them \
differs: the same measurement, repeated, spans {plain} an environment, with graphs {graphs}. \
Savings of that size, also negative ones, say nothing here. The next table shows the small \
changes."""

WITHOUT = """\
Little else moves here, so these figures are finer than those above. Where only what is seen is \
drawn, there is nothing to convert or to stabilise; where graphs are not asked for, there is none \
to share."""

HEAD = """\
# The ninja system, as described and made to fit

`python -m benchmarks.ninja STAGE` measures these (stages costs, without, workers, training, \
profiler, learning; table writes this page) on a machine with 2 cores, CPU only. Every figure \
comes from processes of its own: what an environment costs is the difference of the PSS of two \
processes with few and with more environments, divided by the difference of their numbers.
"""
