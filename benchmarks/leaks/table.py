"""The page of this benchmark, from its results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

from benchmarks.leaks.cases import REPORT, TUNING, families

Rows = Mapping[str, Mapping[str, Any]]
_CLOSE = 0.05
_TEXT = """# Does it leak?

`python -m benchmarks.leaks STAGE` (stages verdicts, truths, rivals, overhead; table writes this \
page; `make bench-profile` does all) asks memfit and three other tests about small environments, \
about half of which leak. Each case is a family and a seed, which draws sizes, lengths of \
episodes, names and garbage. The verdict was tuned on the families of `families_tuning.py`, with \
other seeds than these; those of `families_report.py` and `families_odd.py` were written \
afterwards, and used for this page alone. A case that was not answered counts as wrong.

The truth of a leak is what the kernel counts in a plain loop without memfit, until it has grown \
by 64 MiB or for 4 seconds.

"""


def page(
    verdicts: Rows,
    truths: Rows,
    rivals: Rows,
    overhead: Mapping[str, Any],
    real: Sequence[Mapping[str, Any]],
) -> str:
    """The whole page."""
    found = [_TEXT, _summary(verdicts, truths, overhead), _beside(verdicts, rivals)]
    found += [_families(verdicts, truths), _wrong(verdicts, truths), _real(real)]
    return "\n".join(found)


def _leaking(row: Mapping[str, Any]) -> bool:
    return bool(row["verdict"] == "leaking")


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({part / max(1, whole):.1%})"


def _summary(verdicts: Rows, truths: Rows, overhead: Mapping[str, Any]) -> str:
    late = set(families(*REPORT))
    lines = [
        (
            f"{len(verdicts)} cases of {len({row['family'] for row in verdicts.values()})} "
            "families, in a shuffled order as far as there was time."
        ),
        "",
        "| | asked | all families | families for the report alone |",
        "|---|--:|--:|--:|",
    ]
    both: tuple[Callable[[Mapping[str, Any]], bool], ...] = (
        lambda row: True,
        lambda row: row["family"] in late,
    )

    def line(name: str, asked: str, cell: Callable[[Rows], str]) -> None:
        cells = [cell({n: row for n, row in verdicts.items() if of(row)}) for of in both]
        lines.append(f"| {name} | {asked} | {' | '.join(cells)} |")

    line("leaks found", "97 %", _found)
    line("false alarms", "1 % at most", _alarms)
    line(
        "bytes a frame within 5 % of the kernel's",
        "all",
        lambda rows: _close(rows, truths),
    )
    line("holder named first, where Python has one", "90 %", _holders)
    if overhead:
        lines += [
            "",
            (
                f"Loop time with readings, in turns with a bare loop ({overhead['frames']:,} "
                f"frames of the ninja, a reading every {overhead['every']}): "
                f"{overhead['overhead']:+.1%} (median of {len(overhead['bare_seconds'])} pairs; "
                "asked: at most 3 %). Collecting garbage and reading all that is in use, at the "
                "ends of legs, come on top, and are not part of the loop."
            ),
        ]
    return "\n".join(lines) + "\n"


def _found(rows: Rows) -> str:
    leaks = [row for row in rows.values() if row["leaks"]]
    return _share(sum(map(_leaking, leaks)), len(leaks))


def _alarms(rows: Rows) -> str:
    clean = [row for row in rows.values() if not row["leaks"]]
    return _share(sum(_leaking(row) or row["verdict"] == "failed" for row in clean), len(clean))


def _error(row: Mapping[str, Any], truth: Mapping[str, Any]) -> float | None:
    """How far the bytes a frame are off, None where the truth is that nothing is held."""
    if truth.get("truth_per_episode", 0.0) < 512:
        return None
    return float(row.get("bytes_per_frame", 0.0) / truth["truth_per_frame"] - 1)


def _errors(rows: Rows, truths: Rows) -> list[float]:
    known = [(row, truths[name]) for name, row in rows.items() if row["leaks"] and name in truths]
    return [error for row, truth in known if (error := _error(row, truth)) is not None]


def _close(rows: Rows, truths: Rows) -> str:
    errors = _errors(rows, truths)
    close = sum(abs(error) <= _CLOSE for error in errors)
    if not errors:
        return ""
    return f"{_share(close, len(errors))}, median {median(map(abs, errors)):.1%}"


def _is_named(row: Mapping[str, Any]) -> bool:
    """Whether the holder that is named first is the one that keeps."""
    first = next(iter(row.get("holders") or ()), "")
    return bool(first and first.startswith(row.get("holder") or "?"))


def _holders(rows: Rows) -> str:
    held = [row for row in rows.values() if row["leaks"] and row.get("holder") != ""]
    return _share(sum(_is_named(row) for row in held), len(held))


def _beside(verdicts: Rows, rivals: Rows) -> str:
    """The same cases by each test."""
    names = {
        "memfit": "memfit",
        "tracemalloc": "RLlib's statistic (tracemalloc)",
        "repeated": "psutil's repeated growth (USS, heap)",
        "snapshots": "first against last snapshot (1 MiB)",
    }
    shared = [name for name in verdicts if name in rivals]
    if not shared:
        return "## Beside other tests\n\nNot asked yet: `python -m benchmarks.leaks rivals`.\n"
    about = f"On the first {len(shared)} cases of a shuffled order: others are slow to ask. "
    about += "Written by us from what is published of each."
    lines = [
        "## Beside other tests",
        "",
        about,
        "",
        "| test | leaks found | false alarms | precision | recall |",
        "|---|--:|--:|--:|--:|",
    ]
    for way, title in names.items():
        said = Counter[tuple[bool, bool]]()
        for name in shared:
            leaks = bool(verdicts[name]["leaks"])
            told = _leaking(verdicts[name]) if way == "memfit" else rivals[name][way]
            # What fails has found no leak, and is a false alarm where there is none.
            said[leaks, told is True or (told == "failed" and not leaks)] += 1
        right, missed = said[True, True], said[True, False]
        alarms, quiet = said[False, True], said[False, False]
        lines.append(
            f"| {title} | {_share(right, right + missed)} | {_share(alarms, alarms + quiet)} | "
            f"{right / max(1, right + alarms):.1%} | {right / max(1, right + missed):.1%} |"
        )
    lines += [
        "",
        "Published marks, on other programs: RESIN, in production, precision 85 % and recall 91 %.",
    ]
    return "\n".join(lines) + "\n"


def _families(verdicts: Rows, truths: Rows) -> str:
    late = families(*REPORT)
    lines = [
        "## By family",
        "",
        "| family | leaks | for the report alone | right | holder | bytes a frame, median error |",
        "|---|---|---|--:|--:|--:|",
    ]
    for name, family in {**families(TUNING), **late}.items():
        own = {n: row for n, row in verdicts.items() if row["family"] == name}
        if not own:
            continue
        right = sum(
            _leaking(row) == row["leaks"] and row["verdict"] != "failed" for row in own.values()
        )
        named = held = ""
        if family.LEAKS and family.HOLDER:
            held = f"{sum(map(_is_named, (r for r in own.values() if 'holder' in r)))}/{len(own)}"
        errors = _errors(own, truths)
        named = f"{median(errors):+.1%}" if errors else ""
        lines.append(
            f"| {name} | {'yes' if family.LEAKS else ''} | {'yes' if name in late else ''} | "
            f"{right}/{len(own)} | {held} | {named} |"
        )
    return "\n".join(lines) + "\n"


def _wrong(verdicts: Rows, truths: Rows) -> str:
    lines = ["## What was wrong", ""]
    for name, row in sorted(verdicts.items()):
        if _leaking(row) != row["leaks"] or row["verdict"] == "failed":
            lines.append(f"- {name}: {row['verdict']} ({row['why'][:200]})")
    if len(lines) == 2:
        lines.append("No verdict.")
    far = {
        name: error
        for name, row in sorted(verdicts.items())
        if row["leaks"] and (error := _error(row, truths.get(name, {}))) is not None
        if abs(error) > _CLOSE
    }
    if far:
        told = ", ".join(f"{name} {error:+.1%}" for name, error in far.items())
        lines += ["", f"Bytes a frame by more than {_CLOSE:.0%}: {told}."]
    lines += [
        "",
        (
            "Bytes a frame are those in use, by malloc's and Python's own count, times the pages "
            "that a byte in use took in the last leg, where that one grew by 2 MiB or more. Tables "
            "that double come in steps: neither this nor the kernel's own count is then the same "
            "from one stretch to the next."
        ),
    ]
    return "\n".join(lines) + "\n"


def _real(real: Sequence[Mapping[str, Any]]) -> str:
    lines = ["## Environments of others", ""]
    for row in real:
        notes = "; ".join(row["notes"])
        lines.append(
            f"- CartPole filmed by RecordVideo of Gymnasium {row['gymnasium']}: {row['verdict']}, "
            f"peak {row['peak_bytes'] / 2**20:.0f} MiB{f'; {notes}' if notes else ''}"
        )
    return "\n".join(lines if real else []) + "\n"
