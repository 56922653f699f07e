"""Stage ``table --draw SEED``: the page about runs that were drawn at random.

What was not answered counts as a miss: its error is whole, its bound broken, its verdicts wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.accuracy.case import Case
from benchmarks.accuracy.draw import draw
from benchmarks.accuracy.stats import MARGINS, Results, Spread, error, errors, percentile
from benchmarks.accuracy.store import Store
from benchmarks.accuracy.table import BASELINES, versions

README = Path(__file__).parent / "README.md"
MIB = 1 << 20
BUSY = 0.015  # of the quiet plan, asked of one that is made beside others
LEAST, MOST = 300 * MIB, 8192 * MIB  # true peaks that the distribution is about
_RUNS = (
    "| run | kind | true MiB | runs differ by | plan MiB | err % | slack % "
    "| probe MiB | err % | slack % |"
)
WAYS = {"plan": "default", "probe": "--probe"}
_STATED = """
A generator (`draw.py`, which states the distribution) draws runs from a seed. Weights of the upper
bound were chosen on another draw, its factor on a third (`memfit/analyses/upper_bound.py` names
both); nothing was changed after a look at this one.
"""
_TRUTH = """
The truth is the median of {times} runs of the unmodified script: the highest proportional set size
(PSS) of the process and its descendants, read from outside; for a process without descendants the
kernel's high-water mark. Each run had private copies of its libraries, so that no other process
shared its pages. Repeated runs of one script differ by {median} in the median and {worst} at most.
"""


@dataclass(frozen=True)
class Pair:
    """One run: what it took, and what was said of it (None where nothing was)."""

    case: Case
    peaks: tuple[int, ...]
    import_bytes: int
    said: dict[str, object] | None

    @property
    def true(self) -> int:
        return sorted(self.peaks)[len(self.peaks) // 2]

    def figure(self, key: str) -> float | None:
        value = (self.said or {}).get(key)
        return float(value) if isinstance(value, int | float) else None

    @property
    def error(self) -> float:
        predicted = self.figure("peak_bytes")
        return 1.0 if predicted is None else error(predicted, self.true)

    @property
    def added_error(self) -> float:
        """The error as a share of what the run adds to its imported libraries."""
        return self.error * self.true / max(1, self.true - self.import_bytes)

    @property
    def slack(self) -> float:
        upper = self.figure("upper_bytes")
        return -1.0 if upper is None else error(upper, self.true)

    @property
    def broken(self) -> int:
        """How many of its runs went above the bound."""
        upper = self.figure("upper_bytes") or 0
        return sum(peak > upper for peak in self.peaks)

    @property
    def verdicts(self) -> list[bool]:
        predicted = self.figure("peak_bytes")
        return [
            predicted is not None and (predicted <= self.true * margin) == (margin >= 1)
            for margin in MARGINS
        ]


def write(seed: int, runs: int) -> None:
    """Write the page from the results of a draw."""
    cases = draw(seed, runs)
    names = ("truth", *WAYS, "baselines", "quick", "busy")
    README.write_text(
        render(seed, cases, {name: Store(f"draw{seed}-{name}").current(cases) for name in names})
    )


def render(seed: int, cases: Sequence[Case], results: dict[str, Results]) -> str:
    """Return the whole page."""
    truth = results["truth"]
    compared = [case for case in cases if _within(truth.get(case.name))]
    ways = {way: _pairs(compared, truth, results[way]) for way in WAYS}
    return "\n".join(
        [
            _introduction(seed, cases, compared, truth, ways["plan"]),
            _summary(ways),
            _groups(ways),
            _baselines(results["baselines"], ways["plan"]),
            _beside_others(results["quick"], results["busy"]),
            _rows(ways),
            _left_out(cases, truth, results),
        ]
    )


def _within(result: dict[str, object] | None) -> bool:
    if result is None or not result["ok"]:
        return False
    peak = result["peak_bytes"]
    return isinstance(peak, int) and LEAST <= peak <= MOST


def _pairs(cases: Iterable[Case], truth: Results, said: Results) -> list[Pair]:
    return [
        Pair(
            case,
            tuple(truth[case.name]["peaks"]),
            truth[case.name]["import_bytes"],
            said[case.name] if said.get(case.name, {}).get("ok") else None,
        )
        for case in cases
    ]


def _introduction(
    seed: int, cases: Sequence[Case], compared: Sequence[Case], truth: Results, pairs: list[Pair]
) -> str:
    spreads = [(max(p.peaks) - min(p.peaks)) / p.true for p in pairs] or [0.0]
    large = sum(p.true > 1024 * MIB for p in pairs)
    times = max((len(p.peaks) for p in pairs), default=0)
    said = _TRUTH.format(
        times=times, median=_share(percentile(spreads, 0.5)), worst=_share(max(spreads))
    )
    return f"""# Accuracy of memfit, on runs drawn at random

Written by `python -m benchmarks.accuracy table --draw {seed}`; do not edit. Seed {seed}:
{len(cases)} runs drawn, {len(compared)} compared, {large} of them above 1 GiB.
{_STATED}{said}
Error = (predicted - true) / true. Figures that miss their target are **bold**.

{versions()}
"""


@dataclass(frozen=True)
class Line:
    """One line of the summary, with what is asked of the default and of --probe."""

    title: str
    value: Callable[[list[Pair]], float]
    asked: tuple[float, float]
    unit: str = "%"
    at_least: bool = False

    def cells(self, ways: dict[str, list[Pair]]) -> str:
        shown = []
        for pairs, asked in zip(ways.values(), self.asked, strict=True):
            value = self.value(pairs) * (100 if self.unit == "%" else 1)
            met = value >= asked if self.at_least else value <= asked
            text = f"{value:.2f} {self.unit}"
            sign = "≥" if self.at_least else "≤"
            shown += [text if met else f"**{text}**", f"{sign} {asked:g} {self.unit}"]
        return f"| {self.title} | {' | '.join(shown)} |"


def _of(name: str, share: float) -> Callable[[list[Pair]], float]:
    return lambda pairs: percentile([abs(getattr(p, name)) for p in pairs], share)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


LINES = (
    Line("error of the peak, median", _of("error", 0.5), (1.5, 0.6)),
    Line("error of the peak, 95th percentile", _of("error", 0.95), (6, 3)),
    Line("error of the peak, worst", _of("error", 1.0), (15, 8)),
    Line("error of what the run adds to its libraries, median", _of("added_error", 0.5), (4, 1.5)),
    Line(
        "runs above the upper bound",
        lambda pairs: sum(p.broken for p in pairs) / sum(len(p.peaks) for p in pairs),
        (1, 1),
    ),
    Line(
        "slack of the upper bound, median",
        lambda pairs: percentile([p.slack for p in pairs], 0.5),
        (7, 4),
    ),
    Line(
        "verdict right, limits within 10 % of the true peak",
        lambda pairs: _mean([float(right) for p in pairs for right in p.verdicts]),
        (95, 98),
        at_least=True,
    ),
    Line(
        "time, cold, median",
        lambda pairs: percentile([p.figure("seconds") or math.inf for p in pairs], 0.5),
        (4, 15),
        unit="s",
    ),
)


def _summary(ways: dict[str, list[Pair]]) -> str:
    head = " | ".join(f"{name} | asked" for name in WAYS.values())
    lines = ["## Summary", "", f"| | {head} |", "| --- |" + " ---: |" * (2 * len(WAYS))]
    lines += [line.cells(ways) for line in LINES if ways["plan"]]
    more: dict[str, Callable[[list[Pair]], str]] = {
        "runs above the bound, of all, with the 95 % interval": _broken,
        "time, 95th percentile and longest": _times,
        "memory of the planner, median and most": _planner,
        "runs that were rehearsed": _rehearsed,
        "runs without an answer": lambda pairs: str(sum(p.said is None for p in pairs)),
    }
    for title, cell in more.items():
        lines.append(f"| {title} | {' | | '.join(cell(pairs) for pairs in ways.values())} | |")
    lines += [
        "",
        "The verdict is whether the predicted peak is within a limit; the limits are the true",
        "peak times 0.9, 0.925, 0.95, 0.975, 1.025, 1.05, 1.075 and 1.1. The slack of the upper",
        "bound is (upper - true) / true. Every single run is held against the bound.",
        "",
    ]
    return "\n".join(lines)


def _broken(pairs: list[Pair]) -> str:
    broken, runs = sum(p.broken for p in pairs), sum(len(p.peaks) for p in pairs)
    low, high = interval(broken, runs)
    return f"{broken} of {runs} ({_share(low)} to {_share(high)})"


def interval(hits: int, count: int, confidence: float = 0.95) -> tuple[float, float]:
    """The exact interval (Clopper and Pearson) of a share of which so many hits were seen."""

    def at_most(k: int, share: float) -> float:
        terms = (math.comb(count, i) * share**i * (1 - share) ** (count - i) for i in range(k + 1))
        return sum(terms)

    def solve(k: int, wanted: float) -> float:
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if at_most(k, middle) > wanted else (low, middle)
        return low

    tail = (1 - confidence) / 2
    lowest = 0.0 if hits == 0 else solve(hits - 1, 1 - tail)
    return lowest, 1.0 if hits == count else solve(hits, tail)


def _times(pairs: list[Pair]) -> str:
    spread = Spread.of([p.figure("seconds") or math.inf for p in pairs])
    return f"{spread.p95:.1f} s, {spread.worst:.1f} s"


def _planner(pairs: list[Pair]) -> str:
    spread = Spread.of([(p.figure("own_peak_bytes") or 0) / MIB for p in pairs])
    return f"{spread.median:,.0f} MiB, {spread.worst:,.0f} MiB"


def _rehearsed(pairs: list[Pair]) -> str:
    return str(sum((p.said or {}).get("method") == "probe" for p in pairs))


def _groups(ways: dict[str, list[Pair]]) -> str:
    lines = [
        "## By algorithm, kind of network and size",
        "",
        "| | runs | median | worst | above the bound | --probe: median | worst | above |",
        "| --- |" + " ---: |" * 7,
    ]
    for place in range(3):
        for group in sorted({p.case.covers[place] for p in ways["plan"]}):
            cells = []
            for pairs in ways.values():
                of = [p for p in pairs if p.case.covers[place] == group]
                cells += [_share(_of("error", share)(of)) for share in (0.5, 1.0)]
                cells.append(str(sum(p.broken > 0 for p in of)))
                count = len(of)
            lines.append(f"| {group} | {count} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _baselines(baselines: Results, pairs: list[Pair]) -> str:
    lines = [
        "## Without memfit, on the same runs",
        "",
        "| | runs | error, median | 95th percentile | worst |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    peaks = {p.case.name: p.true for p in pairs}
    for title, key in BASELINES.items():
        values = errors(baselines, peaks, key)
        spread = Spread.of(values)
        shown = " | ".join(map(_share, (spread.median, spread.p95, spread.worst)))
        lines.append(f"| {title} | {len(values)} | {shown} |")
    return "\n".join([*lines, ""])


def _beside_others(quiet: Results, busy: Results) -> str:
    """How far plans without a rehearsal are from those on a quiet machine, beside two others."""
    names = [name for name in busy if quiet.get(name, {}).get("ok")]
    apart = [
        abs(error(busy[name]["peak_bytes"], quiet[name]["peak_bytes"])) if busy[name]["ok"] else 1.0
        for name in names
    ]
    lines = ["## Beside two busy processes", ""]
    if apart:
        within = sum(one <= BUSY for one in apart)
        lines.append(
            f"Of {len(apart)} plans made again while two processes kept both cores busy, {within} "
            f"are within {_share(BUSY)} of the quiet one: median {_share(percentile(apart, 0.5))}, "
            f"worst {_share(max(apart))}."
        )
    else:
        lines.append("Not measured.")
    return "\n".join([*lines, ""])


def _rows(ways: dict[str, list[Pair]]) -> str:
    lines = [
        "## Runs",
        "",
        _RUNS,
        "| --- | --- |" + " ---: |" * 8,
    ]
    for plain, probed in zip(*ways.values(), strict=True):
        spread = (max(plain.peaks) - min(plain.peaks)) / plain.true
        cells = [plain.case.name, " ".join(plain.case.covers), f"{plain.true / MIB:.1f}"]
        cells.append(_share(spread))
        for pair in (plain, probed):
            peak = pair.figure("peak_bytes")
            if peak is None:
                cells += ["**no answer**", "-", "-"]
                continue
            slack = f"{pair.slack * 100:+.1f}"
            cells += [f"{peak / MIB:.1f}", f"{pair.error * 100:+.1f}"]
            cells.append(f"**{slack}**" if pair.broken else slack)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _left_out(cases: Sequence[Case], truth: Results, results: dict[str, Results]) -> str:
    """Runs that are not compared, and predictions that failed, each with its reason."""
    lines = []
    for case in cases:
        result = truth.get(case.name)
        if result is None:
            lines.append(f"- {case.name}: not run")
        elif not result["ok"]:
            lines.append(f"- {case.name}: {result['why']}")
        elif not _within(result):
            peak = result["peak_bytes"] / MIB
            lines.append(
                f"- {case.name}: its peak of {peak:.0f} MiB is not one of 300 MiB to 8 GiB"
            )
    for way, words in WAYS.items():
        failed = ((name, one) for name, one in results[way].items() if not one["ok"])
        lines += [f"- {words}, {name}: {one['why']}" for name, one in failed]
    return "\n".join(["## Not compared, and not answered", "", *(lines or ["None."]), ""])


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value * 100:.1f} %"
