"""Who holds what grew: holders at two moments subtracted, and what kind of memory that is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from memfit.model.profile import (
    Bound,
    Counted,
    GrownHolder,
    GrowthKind,
    Judgement,
)

Holders = Mapping[tuple[str, str], tuple[int, int]]
_LEAST, _LEAST_SHARE, _MOST = 1024, 0.02, 8
_NAMED = 0.35  # of what grew has a Python holder: else it is native
_OURS = ("memfit.child", "memfit.model", "memfit.measure", "memfit.inside", "main(", "main.")
_ANY = re.compile(r"\[\*\]$")
_WHATS = {"arrays": "arrays", "python": "Python objects"}


def grown(before: Holders, after: Holders, frames: int) -> list[GrownHolder]:
    """The holders that grew, the most first; objects of a container and the container are one."""
    rows: dict[str, list[int]] = {}
    for (path, kind), (size, count) in after.items():
        if path.startswith(_OURS) or path == "other objects of the run":
            continue
        then, had = before.get((path, kind), (0, 0))
        row = rows.setdefault(_ANY.sub("", path), [0, 0, 0])
        row[0 if kind == "arrays" else 1] += size - then
        row[2] = max(row[2], count - had)
    found = []
    for path, (arrays, python, count) in rows.items():
        if arrays + python >= _LEAST:
            found.append(
                GrownHolder(
                    path=f"{path}[*]" if count > 1 else path,
                    bytes=arrays + python,
                    what=_WHATS["arrays" if arrays > python else "python"],
                    elements=count,
                    per_frame=(arrays + python) / max(1, frames),
                )
            )
    found.sort(key=lambda holder: -holder.bytes)
    least = _LEAST_SHARE * (found[0].bytes if found else 0)
    return [holder for holder in found if holder.bytes >= least][:_MOST]


def unnamed(judgement: Judgement, holders: Sequence[GrownHolder]) -> bool:
    """Whether most of what Python and malloc have given out is with none of these holders."""
    paces = {row.what: row.per_frame for row in judgement.growing}
    grown_by = paces.get(Counted.PYTHON, 0.0) + paces.get(Counted.MALLOC, 0.0)
    return sum(holder.per_frame for holder in holders) < _NAMED * grown_by


def kind_of(judgement: Judgement, holders: Sequence[GrownHolder]) -> GrowthKind | None:
    """What grows, as people say it: what was counted, and whether somebody in Python holds it."""
    if not judgement.growing:
        return None
    names = {row.what for row in judgement.growing}
    for what, kind in (
        (Counted.THREADS, GrowthKind.THREADS),
        (Counted.PROCESSES, GrowthKind.PROCESSES),
        (Counted.SHARED, GrowthKind.SHARED),  # each segment has a file descriptor too
        (Counted.FILES, GrowthKind.FILES),
    ):
        if what in names:
            return kind
    if Counted.OTHERS in names:
        return GrowthKind.OTHERS
    if Counted.MAPPED in names and Counted.MALLOC not in names:
        return GrowthKind.MAPPED
    paces = {row.what: row.per_frame for row in judgement.growing}
    python, malloc = paces.get(Counted.PYTHON, 0.0), paces.get(Counted.MALLOC, 0.0)
    named = sum(holder.per_frame for holder in holders)
    arrays = sum(holder.per_frame for holder in holders if holder.what == "arrays")
    if malloc > python and named < _NAMED * malloc:
        return GrowthKind.NATIVE
    return GrowthKind.ARRAYS if arrays > 0.5 * named else GrowthKind.PYTHON


def bound_of(told: Mapping[str, object], path: str) -> Bound | None:
    """What ends a holder's growth, where it was told."""
    if "capacity" not in told:
        return None
    return Bound(
        path=path,
        what=str(told["bound"]),
        capacity=int(str(told["capacity"])),
        length=int(str(told["length"])),
    )
