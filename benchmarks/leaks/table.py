"""The page of this benchmark, from its results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

from benchmarks.leaks.cases import LAST, REPORT, TUNING, families

Rows = Mapping[str, Mapping[str, Any]]
_CLOSE = 0.05
_TEXT = """# Does it leak?

`python -m benchmarks.leaks STAGE` (stages verdicts, truths, spread, rivals, overhead; table \
writes this page; `make bench-profile` does all) asks memfit and three other tests about small \
environments, about half of which leak. Each case is a family and a seed, which draws sizes, \
lengths of episodes, names and garbage. The verdict was tuned on the families of \
`families_tuning.py` and `families_moved.py` (of an earlier report, whose answers led to a \
change), with other seeds than these. Those of `families_report.py`, `families_odd.py` and \
`families_mapped.py` were written afterwards and are not tuned on; those of `families_late.py` \
were written last, and are seen here for the first time. A case that was not answered counts as \
wrong.

The truth of a leak is what the kernel counts in a plain loop without memfit, from where what was \
free is used up until it has grown by 64 MiB or for 12 seconds (48 where it has not grown by 24 \
MiB), as the mean of bytes a frame over \
the last doubling of the frames: tables that double come in steps, and where a run ends would \
decide otherwise. memfit's own is such a mean as well, of shorter runs.

"""


def page(
    verdicts: Rows,
    truths: Rows,
    rivals: Rows,
    overhead: Mapping[str, Any],
    real: Sequence[Mapping[str, Any]],
    spread: Mapping[str, Sequence[float]] | None = None,
    earlier: Mapping[str, str] | None = None,
) -> str:
    """The whole page."""
    found = [_TEXT, _summary(verdicts, truths, overhead), _earlier(earlier or {}), _beside(rivals)]
    found += [_families(verdicts, truths), _wrong(verdicts, truths, spread or {}), _real(real)]
    return "\n".join(found)


def _leaking(row: Mapping[str, Any]) -> bool:
    return bool(row["verdict"] == "leaking")


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({part / max(1, whole):.1%})"


def _summary(verdicts: Rows, truths: Rows, overhead: Mapping[str, Any]) -> str:
    late, last = set(families(*REPORT)), set(families(LAST))
    lines = [
        (
            f"{len(verdicts)} cases of {len({row['family'] for row in verdicts.values()})} "
            "families, in a shuffled order as far as there was time: `verdicts` goes on from there."
        ),
        "",
        "| | asked | all families | not tuned on | written last |",
        "|---|--:|--:|--:|--:|",
    ]
    groups: tuple[Callable[[Mapping[str, Any]], bool], ...] = (
        lambda row: True,
        lambda row: row["family"] in late,
        lambda row: row["family"] in last,
    )

    def line(name: str, asked: str, cell: Callable[[Rows], str]) -> None:
        cells = [cell({n: row for n, row in verdicts.items() if of(row)}) for of in groups]
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


def headline(verdicts: Rows, truths: Rows) -> dict[str, str]:
    """What is kept of a report when the next one begins, with other seeds."""
    return {
        "cases": str(len(verdicts)),
        "leaks found": _found(verdicts),
        "false alarms": _alarms(verdicts),
        "bytes a frame within 5 %": _close(verdicts, truths),
        "holder named first": _holders(verdicts),
    }


def _earlier(kept: Mapping[str, str]) -> str:
    if not kept:
        return ""
    told = "; ".join(f"{name} {value}" for name, value in kept.items() if name != "cases")
    return (
        f"The report before this one, on {kept['cases']} cases of other seeds and before the last "
        f"changes: {told}.\n"
    )


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


def _beside(rivals: Rows) -> str:
    """The same cases by each test."""
    names = {
        "memfit": "memfit",
        "tracemalloc": "RLlib's statistic (tracemalloc)",
        "repeated": "psutil's repeated growth (USS, heap)",
        "snapshots": "first against last snapshot (1 MiB)",
    }
    shared = list(rivals)
    if not shared:
        return "## Beside other tests\n\nNot asked yet: `python -m benchmarks.leaks rivals`.\n"
    seeds = sorted({int(name.rpartition("-")[2]) for name in shared})
    about = f"On {len(shared)} cases of seeds {seeds[0]} to {seeds[-1]}, with what memfit said of "
    about += "them then: others are slow to ask. Written by us from what is published of each."
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
            leaks, told = bool(rivals[name]["leaks"]), rivals[name][way]
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
    lines = [
        "## By family",
        "",
        "| family | leaks | not tuned on | right | holder | bytes a frame, median error |",
        "|---|---|---|--:|--:|--:|",
    ]
    for name, family in families(*TUNING, *REPORT).items():
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
            f"| {name} | {'yes' if family.LEAKS else ''} | {_group(name)} | "
            f"{right}/{len(own)} | {held} | {named} |"
        )
    return "\n".join(lines) + "\n"


def _group(family: str) -> str:
    if family in families(LAST):
        return "written last"
    return "yes" if family in families(*REPORT) else ""


def far_off(verdicts: Rows, truths: Rows) -> dict[str, float]:
    """The leaks whose bytes a frame are off by more than what is asked, and by how much."""
    return {
        name: error
        for name, row in sorted(verdicts.items())
        if row["leaks"] and (error := _error(row, truths.get(name, {}))) is not None
        if abs(error) > _CLOSE
    }


def _wrong(verdicts: Rows, truths: Rows, spread: Mapping[str, Sequence[float]]) -> str:
    lines = ["## What was wrong", ""]
    for name, row in sorted(verdicts.items()):
        if _leaking(row) != row["leaks"] or row["verdict"] == "failed":
            lines.append(f"- {name}: {row['verdict']} ({row['why'][:200]})")
    if len(lines) == 2:
        lines.append("No verdict.")
    far = far_off(verdicts, truths)
    if far:
        told = ", ".join(f"{name} {error:+.1%}" for name, error in far.items())
        lines += ["", f"Bytes a frame by more than {_CLOSE:.0%}: {told}."]
    if spread:
        ranges = ", ".join(
            f"{name} {min(values):,.0f} to {max(values):,.0f} "
            f"({verdicts[name]['bytes_per_frame']:,.0f})"
            for name, values in sorted(spread.items())
            if name in far
        )
        lines += [
            "",
            (
                "They are counted as misses. What plain loops of these cases take for a frame "
                "after other imports, which leave malloc's heap in another state, and in brackets "
                f"what memfit said: {ranges}."
            ),
        ]
    lines += [
        "",
        (
            "Bytes a frame are those in use, by malloc's and Python's own count, times the pages "
            "that a byte in use took once what was free was used up, where enough of them came. "
            "Blocks of AlignedNative cost by where malloc finds room for them: 128 or 192 bytes "
            "for one of 65 at a border of 64, for a whole run, with memfit or without."
        ),
    ]
    return "\n".join(lines) + "\n"


def _real(real: Sequence[Mapping[str, Any]]) -> str:
    lines = ["## Environments of others", ""]
    for row in real:
        notes = list(row["notes"])
        if row["verdict"] == "leaking":
            notes.insert(0, f"{row['bytes_per_episode']:,} bytes an episode")
        if "bytes_per_episode_by_hand" in row:
            by_hand = row["bytes_per_episode_by_hand"]
            notes.insert(1, f"{by_hand:,} by malloc's own count in a plain loop")
        said = "".join(f"; {note}" for note in notes)
        lines.append(
            f"- {row['env']}: {row['verdict']}, peak {row['peak_bytes'] / 2**20:.0f} MiB{said}"
        )
    return "\n".join(lines if real else []) + "\n"
