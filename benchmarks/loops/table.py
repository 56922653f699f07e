"""Stage ``table``: the README of the benchmark, from the results on disk.

What was not answered counts as a miss: its error is whole, its bound broken, its settings not
found and its time too long.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.accuracy.report import MIB, Pair
from benchmarks.accuracy.stats import Results, error, percentile
from benchmarks.accuracy.store import Store
from benchmarks.accuracy.table import versions
from benchmarks.loops.case import REPORT, TUNING, Loop
from benchmarks.loops.cases import CASES

README = Path(__file__).parent / "README.md"
MOST_SECONDS, START_SECONDS, CYCLES = 60.0, 6.0, 2
WORST = 0.15
_GROUPS = {REPORT: "report", TUNING: "tuning"}
_ROWS = (
    "| loop | group | what it is | true MiB | plan MiB | err % | slack % "
    "| settings | what-if err % | s | s allowed |"
)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One loop: what it took, and what was said of it; None where nothing was."""

    case: Loop
    truth: dict[str, Any]
    said: dict[str, Any] | None
    twice: dict[str, Any] | None
    whatif: dict[str, Any] | None

    @property
    def pair(self) -> Pair:
        """Truth and prediction of the peak."""
        said = self.said if self.said is not None and self.said["ok"] else None
        return Pair(self.case, (self.truth["peak_bytes"],), 0, said)

    @property
    def answered(self) -> bool:
        return self.pair.said is not None

    @property
    def older(self) -> bool:
        """Whether an earlier version planned it, which did not tell its doubt."""
        return self.answered and not (self.said or {}).get("doubt")

    @property
    def mark(self) -> str:
        """What a reader is to know of the version that planned it."""
        if self.older or self.said is None:
            return "†"
        return "‡" if self.said.get("before") else ""

    @property
    def compared(self) -> bool:
        """What trains without an optimizer may be refused, if the answer says why."""
        return self.case.updates or self.answered

    @property
    def found(self) -> bool:
        """Whether each setting of the case was found, with its value."""
        knobs = (self.said or {}).get("knobs") or {}
        known = {str(name).lower(): value for name, value in knobs.items()}
        wanted = self.case.settings
        return bool(wanted) and all(known.get(k.lower()) == v for k, v in wanted.items())

    @property
    def whatif_error(self) -> float | None:
        """How far the plan at twice the setting is off; None where no such run was measured."""
        if self.twice is None or not self.twice["ok"]:
            return None
        true, said = self.twice["peak_bytes"], self.whatif or {}
        return error(said["peak_bytes"], true) if said.get("ok") else 1.0

    @property
    def seconds(self) -> float:
        return float(self.said["seconds"]) if self.said and self.answered else math.inf

    @property
    def allowed(self) -> float:
        """How long a plan may take."""
        two = CYCLES * float(self.truth["cycle_seconds"])
        return min(MOST_SECONDS, two + START_SECONDS)


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of the summary, as a percentage, with what is asked."""

    title: str
    value: Callable[[Sequence[Row]], float | None]
    asked: float
    at_least: bool = False

    def cell(self, rows: Sequence[Row]) -> str:
        """Show the value, in bold where it misses what is asked."""
        value = self.value(rows)
        if value is None:
            return "-"
        percent = value * 100
        met = percent >= self.asked if self.at_least else percent <= self.asked
        return f"{percent:.1f} %" if met else f"**{percent:.1f} %**"

    def cells(self, groups: Iterable[Sequence[Row]]) -> str:
        """The whole line."""
        sign = "≥" if self.at_least else "≤"
        shown = " | ".join(self.cell(rows) for rows in groups)
        return f"| {self.title} | {shown} | {sign} {self.asked:g} % |"


def _errors(share: float) -> Callable[[Sequence[Row]], float | None]:
    def value(rows: Sequence[Row]) -> float | None:
        sizes = [abs(row.pair.error) for row in rows if row.compared]
        return percentile(sizes, share) if sizes else None

    return value


def _share(hit: Callable[[Row], bool | None]) -> Callable[[Sequence[Row]], float | None]:
    def value(rows: Sequence[Row]) -> float | None:
        hits = [got for got in map(hit, rows) if got is not None]
        return sum(hits) / len(hits) if hits else None

    return value


def _within(row: Row) -> bool | None:
    return None if row.whatif_error is None else abs(row.whatif_error) <= 0.05


def _whatif(rows: Sequence[Row]) -> float | None:
    sizes = [abs(row.whatif_error) for row in rows if row.whatif_error is not None]
    return percentile(sizes, 0.5) if sizes else None


LINES = (
    Line(title="error of the peak, median", value=_errors(0.5), asked=2),
    Line(title="error of the peak, 95th percentile", value=_errors(0.95), asked=8),
    Line(title="error of the peak, worst", value=_errors(1.0), asked=15),
    Line(
        title="upper bound broken",
        value=_share(lambda row: bool(row.pair.broken) if row.compared else None),
        asked=2,
    ),
    Line(title="settings found", value=_share(lambda r: r.found), asked=80, at_least=True),
    Line(title="what-if at twice a setting, median error", value=_whatif, asked=5),
    Line(title="what-if within 5 %", value=_share(_within), asked=100, at_least=True),
    Line(
        title="time within two cycles + 6 s, and within 60 s",
        value=_share(lambda row: row.seconds <= row.allowed),
        asked=100,
        at_least=True,
    ),
)


def write(results: Path) -> None:
    """Write the table from whatever results there are."""
    doubled = [case.at_twice() for case in CASES if case.doubled]
    README.write_text(
        render(
            truth=Store("truth", results).current(CASES),
            plan=Store("plan", results).current(CASES),
            twice=Store("twice", results).current(doubled),
            whatif=Store("whatif", results).current(CASES),
            public=Store("public", results).load(),
        )
    )


def render(
    *, truth: Results, plan: Results, twice: Results, whatif: Results, public: Results
) -> str:
    """Return the whole page."""
    rows = [
        Row(
            case=case,
            truth=truth[case.name],
            said=plan.get(case.name),
            twice=twice.get(case.at_twice().name),
            whatif=whatif.get(case.name),
        )
        for case in CASES
        if truth.get(case.name, {}).get("ok")
    ]
    left_out = _left_out(truth, plan, whatif)
    parts = [_introduction(rows), _summary(rows), _rows(rows), _public(public), left_out]
    return "\n".join(parts)


def _introduction(rows: Sequence[Row]) -> str:
    private = bool(rows) and all(row.truth["private_libraries"] for row in rows)
    alone = (
        "Each run had private copies of its libraries, so that no other process shared its pages."
        if private
        else "**Other processes may have shared pages of some runs, which makes them look small.**"
    )
    return f"""# Plans of any training loop

Written by `python -m benchmarks.loops table`; do not edit. {len(CASES)} loops over
{len({case.script for case in CASES})} programs (`cases_tuning.py`, `cases_report.py`,
`scripts/`), {len(rows)} of them measured. Those of the group *report* were written last, and
nothing is tuned on them; four whose first plans showed what was to be mended are to tune on now.

The truth is the highest proportional set size (PSS) of the process and its descendants over the
whole run of the unmodified program, read from outside; for a process without descendants the
kernel's high-water mark. {alone} The notebook is run cell by cell in a plain Python, without a
kernel. Error = (predicted - true) / true; slack = (upper bound - true) / true. **What was not
answered is a miss**: error 100 %, bound broken, settings not found, time too long. Settings are
found where all those that the case names are among the plan's knobs with their values. The time
of a cycle is that of the measured run less its imports, over the cycles that its case says it
has; in an off-policy loop a cycle is about 1,000 steps. Figures that miss what is asked are
**bold**. Loops marked † have no plan of this version: figures in their lines are of an earlier one,
and the summary leaves them out. Those marked ‡ were planned before the last changes of this version
(time that a trial leaves to tell of it, processes that train, buffers of functions that have
ended, formulas of what comes and goes); their figures count. What-if figures are all of an earlier
version.
{_busy(rows)}
{versions()}
"""


def _busy(rows: Sequence[Row]) -> str:
    """Say so where others computed while times were taken; sizes hardly depend on it."""
    runs = _load(row.truth for row in rows)
    plans = _load(row.said for row in rows if row.said)
    cores = os.cpu_count() or 1
    if max(runs, plans) <= 1.5 * cores:
        return ""
    return f"""
**Others computed while times were taken** (load {runs:.1f} in the median of the runs, {plans:.1f}
of the plans, on {cores} cores): times of runs, what these allow, and times of plans are too long.
"""


def _load(results: Iterable[dict[str, Any]]) -> float:
    loads = [one["load"] for one in results if one.get("load") is not None]
    return percentile(loads, 0.5) if loads else 0.0


def _summary(rows: Sequence[Row]) -> str:
    latest = [row for row in rows if row.said and not row.older]
    groups = [[row for row in latest if row.case.group == group] for group in _GROUPS]
    # Before anything of a group was planned there is nothing to count, and so nothing missed.
    planned = [group if any(row.said for row in group) else [] for group in groups]
    lines = [
        "## Summary",
        "",
        f"| | {' | '.join(_GROUPS.values())} | asked |",
        "| --- | ---: | ---: | ---: |",
        f"| loops planned by this version | {' | '.join(str(len(g)) for g in groups)} | |",
        f"| loops answered | {' | '.join(str(sum(r.answered for r in g)) for g in groups)} | all |",
    ]
    lines += [line.cells(planned) for line in LINES]
    lines.append(f"| trains without an optimizer, and told so | {_told(planned)} | all |")
    return "\n".join([*lines, ""])


def _told(groups: Sequence[Sequence[Row]]) -> str:
    cells = []
    for group in groups:
        without = [row for row in group if not row.case.updates]
        told = sum(bool((row.said or {}).get("says_no_optimizer")) for row in without)
        cells.append(f"{told} of {len(without)}")
    return " | ".join(cells)


def _rows(rows: Sequence[Row]) -> str:
    lines = ["## Loops", "", _ROWS, "| --- | --- | --- |" + " ---: |" * 8]
    for row in rows:
        case, pair = row.case, row.pair
        name = f"{case.name} {row.mark}".strip()
        cells = [name, case.group, " ".join(case.covers), f"{pair.true / MIB:.1f}"]
        peak = pair.figure("peak_bytes")
        if peak is None:
            cells += ["-" if row.said is None else "**no answer**", "-", "-"]
        else:
            off, slack = f"{pair.error * 100:+.1f}", f"{pair.slack * 100:+.1f}"
            cells.append(f"{peak / MIB:.1f}")
            cells.append(f"**{off}**" if abs(pair.error) > WORST else off)
            cells.append(f"**{slack}**" if pair.broken else slack)
        cells.append("-" if row.said is None else ("found" if row.found else "**not found**"))
        doubled = row.whatif_error
        cells.append("-" if doubled is None or not row.whatif else f"{doubled * 100:+.1f}")
        late = row.seconds > row.allowed
        shown = "-" if math.isinf(row.seconds) else f"{row.seconds:.1f}"
        cells += [f"**{shown}**" if late and shown != "-" else shown, f"{row.allowed:.1f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


_FETCHED = """\
Scripts of CleanRL, fetched and not kept here, in short runs of the envs that are here; nothing was
tuned on them. They were changed for Gymnasium 1.4 alone: `TransformObservation` is given its space,
a truncated episode's last observation is what `step` gave, `ale_py` is imported and two wrappers
have their new names."""


def _public(scripts: Results) -> str:
    """Scripts that others published, which are not kept here: figures alone."""
    lines = [
        "## Public scripts",
        "",
        _FETCHED,
        "",
        "| script | true MiB | plan MiB | err % | slack % | settings in formulas or loops | s |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, one in sorted(scripts.items()):
        true, peak, upper = one["true"], one["plan"], one["upper"]
        if not (true and peak):
            lines.append(f"| {name} | - | **no answer** | - | - | - | - |")
            continue
        off, slack = error(peak, true) * 100, error(upper, true) * 100
        cells = [name, f"{true / MIB:.1f}", f"{peak / MIB:.1f}", f"{off:+.1f}", f"{slack:+.1f}"]
        lines.append(f"| {' | '.join(cells)} | {len(one['knobs'])} | {one['s']:.1f} |")
    return "\n".join([*lines, ""]) if scripts else ""


def _left_out(truth: Results, plan: Results, whatif: Results) -> str:
    lines = []
    for case in CASES:
        result = truth.get(case.name)
        if result is None:
            lines.append(f"- {case.name}: not run")
        elif not result["ok"]:
            lines.append(f"- {case.name}: {result['why']}")
    for stage, results in (("plan", plan), ("what-if", whatif)):
        failed = ((name, one) for name, one in results.items() if not one["ok"])
        lines += [f"- {stage}, {name}: {one['why']}" for name, one in failed]
    return "\n".join(["## Not compared, and not answered", "", *(lines or ["None."]), ""])
