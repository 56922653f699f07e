"""Stage ``table``: the README of the benchmark, from the results on disk."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from benchmarks.accuracy.case import Case
from benchmarks.accuracy.cases import CASES
from benchmarks.accuracy.stats import (
    Results,
    Spread,
    Summary,
    error,
    errors,
    summarize,
    true_peaks,
)
from benchmarks.accuracy.store import Store

README = Path(__file__).parent / "README.md"
MIB = 1 << 20
_HEADER = (
    "| case | true MiB | plan MiB | err % | slack % | probe MiB | err % | slack % "
    "| seeds' way % | MemTracker % | SB3 check % |"
)
PACKAGES = ("torch", "stable-baselines3", "sb3-contrib", "gymnasium", "numpy", "memfit")
BASELINES = {
    "the seeds' way (sum of products)": "by_hand_bytes",
    "MemTracker + import base": "mem_tracker_bytes",
    "SB3's replay check": "sb3_check_bytes",
}


@dataclass(frozen=True)
class Figure:
    """One line of the summary, with its targets; shares are shown as percentages."""

    title: str
    value: Callable[[Summary], float | None]
    default: float | None
    probe: float | None
    at_least: bool = False
    unit: str = "%"

    def cell(self, summary: Summary, target: float | None) -> str:
        """Show the value, in bold when it misses its target."""
        value = self.value(summary)
        if value is None:
            return "-"
        scaled = value * 100 if self.unit == "%" else value
        text = f"{scaled:.2f} {self.unit}"
        if target is None:
            return text
        met = scaled >= target if self.at_least else scaled <= target
        return text if met else f"**{text}**"

    def goal(self, target: float | None) -> str:
        """Show the target."""
        return "" if target is None else f"{'≥' if self.at_least else '≤'} {target:g} {self.unit}"


FIGURES = (
    Figure("error of the peak, median", lambda s: s.error.median, 4, 1.5),
    Figure("error of the peak, 95th percentile", lambda s: s.error.p95, 10, 4),
    Figure("error of the peak, worst", lambda s: s.error.worst, 20, 8),
    Figure("runs above the upper bound", lambda s: s.above_upper, 1, 1),
    Figure("slack of the upper bound, median", lambda s: s.slack, 8, 4),
    Figure("verdict right", lambda s: s.verdicts_right, 93, 98, at_least=True),
    Figure("cold time, median", lambda s: s.seconds.median, 4, 30, unit="s"),
    Figure("cold time, 95th percentile", lambda s: s.seconds.p95, None, None, unit="s"),
    Figure("cold time, longest", lambda s: s.seconds.worst, None, None, unit="s"),
)


def write() -> None:
    """Write the table from whatever results there are."""
    stages = {name: Store(name).current(CASES) for name in ("truth", "plan", "probe", "baselines")}
    README.write_text(render(CASES, **stages))


def render(
    cases: tuple[Case, ...], truth: Results, plan: Results, probe: Results, baselines: Results
) -> str:
    """Return the whole page."""
    peaks = true_peaks(truth)
    parts = [
        _introduction(cases, truth, peaks),
        _summary(summarize(plan, peaks), summarize(probe, peaks)),
        _baselines(baselines, peaks),
        _rows(cases, truth, plan, probe, baselines),
        _failures({"truth": truth, "plan": plan, "probe": probe}, baselines),
    ]
    return "\n".join(parts)


def _introduction(cases: tuple[Case, ...], truth: Results, peaks: dict[str, int]) -> str:
    private = all(truth[name]["private_libraries"] for name in peaks) if peaks else False
    alone = (
        "Each run was started on private copies of its libraries, so that no other process "
        "on the machine shared its pages."
        if private
        else "**Other processes may have shared pages of some runs, which makes them look small.**"
    )
    return f"""# Accuracy of memfit

Written by `python -m benchmarks.accuracy table`; do not edit. {len(cases)} cases, of which
{len(peaks)} ran to their end and are compared here. A case is a plain training script with its
arguments (`cases.py`, `scripts/`). The truth is the highest proportional set size (PSS) of the
process and all its descendants, sampled from outside about every 4 ms while the script runs
unmodified; for a process without descendants that is its resident size, whose high-water mark
the kernel keeps. {alone}
Error = (predicted - true) / true. Figures that miss their target are **bold**.

{versions()}
"""


def versions() -> str:
    found = [f"Python {platform.python_version()}"]
    for package in PACKAGES:
        try:
            found.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue
    ram = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / (1 << 30)
    machine = f"{os.cpu_count()} cores, {ram:.1f} GiB of RAM, no GPU, {platform.system()}"
    return f"Versions: {', '.join(found)}.\nMachine: {machine} {platform.release()}."


def _summary(plan: Summary, probe: Summary) -> str:
    lines = [
        "## Summary",
        "",
        "| | `plan` | target | `plan --probe` | target |",
        "| --- | ---: | ---: | ---: | ---: |",
        f"| runs predicted | {plan.predicted} | | {probe.predicted} | |",
        f"| runs without a prediction | {_count(plan.missing)} | 0 | {_count(probe.missing)} | 0 |",
    ]
    lines += [
        f"| {figure.title} | {figure.cell(plan, figure.default)} | {figure.goal(figure.default)} "
        f"| {figure.cell(probe, figure.probe)} | {figure.goal(figure.probe)} |"
        for figure in FIGURES
    ]
    lines += [
        "",
        "The verdict is whether the predicted peak is within a limit; the limits are the true",
        "peak times 0.9, 0.925, 0.95, 0.975, 1.025, 1.05, 1.075 and 1.1. The slack of the upper",
        "bound is (upper - true) / true.",
        "",
    ]
    return "\n".join(lines)


def _count(missing: int) -> str:
    return f"**{missing}**" if missing else "0"


def _baselines(baselines: Results, peaks: dict[str, int]) -> str:
    lines = [
        "## Without memfit",
        "",
        "| | runs | error, median | 95th percentile | worst |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for title, key in BASELINES.items():
        values = errors(baselines, peaks, key)
        spread = Spread.of(values)
        shown = " | ".join(_share(value) for value in (spread.median, spread.p95, spread.worst))
        lines.append(f"| {title} | {len(values)} | {shown} |")
    lines += [
        "",
        "The seeds' way: rows of the buffer times bytes of an observation, twice; parameters",
        "times 16 bytes; batch times bytes of an observation, three times; 500 MB for PyTorch and",
        "Python and as much for each subprocess. MemTracker: `torch.distributed._tools`, on one",
        "real update, plus the measured size of the imports; its figures by module are switched",
        "off, as with them it refuses every case. SB3's check: the total that `ReplayBuffer`",
        "compares with free memory, 0 where there is no such buffer.",
        "",
    ]
    return "\n".join(lines)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value * 100:.1f} %"


def _rows(
    cases: tuple[Case, ...], truth: Results, plan: Results, probe: Results, baselines: Results
) -> str:
    lines = [
        "## Cases",
        "",
        _HEADER,
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for case in cases:
        result = truth.get(case.name)
        if result is None or not result["ok"]:
            shown = "not run" if result is None else "**failed**"
            lines.append(f"| {case.name} | {shown} |" + " |" * 9)
            continue
        true = result["peak_bytes"]
        cells = [case.name, f"{true / MIB:.1f}"]
        cells += _predicted(plan.get(case.name), true, worst=0.20)
        cells += _predicted(probe.get(case.name), true, worst=0.08)
        simple = baselines.get(case.name, {})
        for key in BASELINES.values():
            value = simple.get(key)
            cells.append("-" if value is None else f"{error(value, true) * 100:+.1f}")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _predicted(result: dict[str, object] | None, true: int, worst: float) -> list[str]:
    """Show peak, error and slack; bold where the error or the bound is broken."""
    if result is None:
        return ["-", "-", "-"]
    peak, upper = result.get("peak_bytes"), result.get("upper_bytes")
    if not isinstance(peak, int):
        return ["**failed**", "-", "-"]
    off = error(peak, true)
    shown = f"{off * 100:+.1f}"
    cells = [f"{peak / MIB:.1f}", f"**{shown}**" if abs(off) > worst else shown]
    if not isinstance(upper, int):
        return [*cells, "-"]
    slack = error(upper, true)
    return [*cells, f"**{slack * 100:+.1f}**" if slack < 0 else f"{slack * 100:+.1f}"]


def _failures(stages: dict[str, Results], baselines: Results) -> str:
    lines = []
    for stage, results in stages.items():
        lines += [
            f"- {stage}, {name}: {result['why']}"
            for name, result in results.items()
            if not result["ok"]
        ]
    for name, result in baselines.items():
        if not result["ok"]:
            lines.append(f"- baselines, {name}: {result['why']}")
        elif result["mem_tracker_bytes"] is None:
            lines.append(f"- MemTracker, {name}: {result['mem_tracker_why']}")
    return "\n".join(["## Failures", "", *(lines or ["None."]), ""])
