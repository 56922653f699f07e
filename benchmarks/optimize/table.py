"""Writes the table of the benchmark: every fix, and every miss counted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.optimize.cases import CASES, EARLIER, REPORT, SYSTEM, TUNING, Case
from memfit.units import MIB, format_bytes

WITHIN, ABOVE, SHARE = 0.10, 5 * MIB, 0.9
Found = Mapping[str, Any]

_ABOUT = (
    "`make bench-optimize` makes every fix of these runs by `memfit optimize --quick`, and writes "
    "this page. Each figure is of real runs in children, a few updates each, on a machine with 2 "
    "cores that other work was using: bytes hold; times are ratios to two runs of the unchanged "
    "target before it, with half the range of these two beside them, and say little here. "
    "Predicted is a ledger with the change subtracted from one without. What was not answered, "
    "not measured or not predicted is counted as a miss.\n"
)
_FRESH = (
    "Scripts of the report were written when the code was done, and nothing was changed in answer "
    "to them. The report before it is a group of its own, with rows as they were then: two "
    "defects that it showed were mended (in sac_dict_report the buffer for a Dict was put in and "
    "not recognised; in config_report, rounding before VecNormalize was called safe). Of the other "
    "groups, ppo_levels was run with the code of the report, and ninja too, but for repeated runs; "
    "the others are of the version before, which measured each fix once and knew no MF514.\n"
)
_HEAD = ("# Fixes: predicted against measured\n", _ABOUT, _FRESH)
_GROUPS = (
    (REPORT, "Scripts for the report alone"),
    (EARLIER, "Scripts of the report before"),
    (TUNING, "Scripts to tune on"),
    (SYSTEM, "The reference systems, as described"),
)


def write(results: Path) -> None:
    """README.md beside the results."""
    known: dict[str, Found] = {}
    for case in CASES:
        path = results / f"{case.name}.json"
        if path.exists():
            known[case.name] = json.loads(path.read_text())
    lines = [*_HEAD, *_summary(known), ""]
    for group, title in _GROUPS:
        lines += [f"## {title}\n", *_rows(_of(group), known), ""]
    lines += ["## Beside what was made to fit by hand\n", *_by_hand(known)]
    (results.parent / "README.md").write_text("\n".join(lines).rstrip() + "\n")


def _of(group: str) -> list[Case]:
    return [case for case in CASES if case.group == group]


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _tried(found: Found) -> list[Found]:
    """Each fix alone, and the set together if there are several in it."""
    together = found.get("together")
    several = together is not None and len(together["codes"]) > 1
    return [*found.get("advice", ()), *([together] if several else [])]


# -- the summary -----------------------------------------------------------------------------------


def _summary(known: Mapping[str, Found]) -> Iterator[str]:
    yield _row("", "report", "report before", "tuning", "systems", "asked")
    yield "|---|--:|--:|--:|--:|--:|"
    counts: Sequence[tuple[str, Callable[[Sequence[Found]], str], str]] = (
        ("targets answered", _answered, "all"),
        ("fixes and sets tried", lambda found: str(len(_every(found))), ""),
        ("saved, or were to save, more than 5 MiB: predicted within 10 %", _close, "all"),
        ("called safe: identical to the bit", _identical, "all"),
    )
    for title, count, asked in counts:
        cells = [count([known.get(c.name, {}) for c in _of(group)]) for group, _ in _GROUPS]
        yield _row(title, *cells, asked)


def _every(found: Iterable[Found]) -> list[Found]:
    return [one for result in found for one in _tried(result)]


def _answered(found: Sequence[Found]) -> str:
    return f"{sum(bool(one.get('ok')) for one in found)} of {len(found)}"


def _close(found: Sequence[Found]) -> str:
    large = [one for one in _every(found) if _is_large(one)]
    return f"{sum(map(_is_close, large))} of {len(large)}"


def _identical(found: Sequence[Found]) -> str:
    safe = [one for one in _every(found) if one["safe"]]
    untold = sum(one["identical"] is None for one in safe)
    said = f", {untold} cannot be told" if untold else ""
    return f"{sum(one['identical'] is True for one in safe)} of {len(safe)}{said}"


def _is_large(one: Found) -> bool:
    return max(one["saves_bytes"] or 0, one["measured_bytes"] or 0) > ABOVE


def _error(one: Found) -> float | None:
    if one["saves_bytes"] is None or not one["measured_bytes"]:
        return None
    return float(one["saves_bytes"] / one["measured_bytes"] - 1)


def _is_close(one: Found) -> bool:
    error = _error(one)
    return error is not None and abs(error) <= WITHIN


# -- every fix -------------------------------------------------------------------------------------


def _rows(cases: Iterable[Case], known: Mapping[str, Found]) -> Iterator[str]:
    yield _row("run", "peak", "fix", "predicted", "measured", "error", "time", "training")
    yield "|---|--:|---|--:|--:|--:|--:|---|"
    for case in cases:
        found = known.get(case.name)
        if found is None or not found["ok"]:
            why = found["error"] if found else "not run"
            yield _row(case.name, "", f"**not answered**: {why}", "", "", "", "", "")
            continue
        name, peak = case.name, _bytes(found["peak_bytes"])
        if not (tried := _tried(found)):
            yield _row(name, peak, "no fix", "", "", "", "", "")
        for one in tried:
            what = f"**together**: {one['code']}" if "codes" in one else _named(one)
            saved = _bytes(one["saves_bytes"]), _bytes(one["measured_bytes"])
            yield _row(name, peak, what, *saved, _share(one), _time(one), _training(one))
            name = peak = ""


def _named(one: Found) -> str:
    change = one["change"].partition(": ")[0].partition(" (")[0]
    why = f" (**not measured**: {one['why_not']})" if one["why_not"] else ""
    return f"{one['code']} {change}{why}".replace("|", "\\|")


def _bytes(amount: int | None) -> str:
    return "none" if amount is None else format_bytes(amount)


def _share(one: Found) -> str:
    error = _error(one)
    if not _is_large(one):
        return ""
    if error is None:
        return "**not known**"
    return f"{error:+.0%}" if _is_close(one) else f"**{error:+.0%}**"


def _time(one: Found) -> str:
    if one["time_ratio"] is None:
        return ""
    noise = "" if one["time_noise"] is None else f" ± {one['time_noise']:.2f}"
    return f"{one['time_ratio']:.2f}{noise}"


def _training(one: Found) -> str:
    claimed = "safe" if one["safe"] else "same steps" if one["to_rounding"] else "changes"
    seen = {True: "identical", False: "not identical", None: "cannot be told"}[one["identical"]]
    wrong = one["safe"] and one["identical"] is False
    return f"**{claimed}: {seen}**" if wrong else f"{claimed}: {seen}"


# -- beside what was made by hand ------------------------------------------------------------------


def _by_hand(known: Mapping[str, Found]) -> Iterator[str]:
    yield (
        "What the fixes save together, beside what the version made to fit by hand saves after as "
        "many updates; asked are 90 % for fighter and ninja.\n"
    )
    yield (
        "Of ninja, build_once takes what each env builds alike: graphs, backgrounds, spaces, "
        "poses. The version by hand also draws in another way (only what is seen, in grey, in "
        "arrays that are used again), which is code of the env: no part of memfit's does that. It "
        "was measured in an earlier session, after as many updates. Drone and trader are loops of "
        "their own, in whose text nothing is edited: settings of malloc and threads are all that "
        "is tried.\n"
    )
    yield _row("system", "as described", "together", "by hand", "of what was saved by hand")
    yield "|---|--:|--:|--:|--:|"
    for case in _of(SYSTEM):
        found = known.get(case.name, {})
        own, hand = found.get("peak_bytes"), found.get("fitted", {}).get("peak_bytes")
        after = (found.get("together") or {}).get("peak_bytes")
        yield _row(case.name, _bytes(own), _bytes(after), _bytes(hand), _kept(own, after, hand))


def _kept(own: int | None, after: int | None, hand: int | None) -> str:
    if not own or not hand or own <= hand:
        return "not known"
    share = 0.0 if after is None else (own - after) / (own - hand)
    return f"{share:.0%}" if share >= SHARE else f"**{share:.0%}**"
