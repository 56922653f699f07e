"""A study's result as lines of text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from memfit.units import format_bytes

if TYPE_CHECKING:
    from memfit.systems.trader.study import Study

_COLUMNS = ("trial", "width", "batch", "threads", "workers", "given", "held", "score")


def lines(study: Study) -> Iterator[str]:
    """A row for each trial with what it was given and held, then what the study took."""
    rows: list[tuple[str, ...]] = [_COLUMNS]
    reasons = []
    scored = []
    for trial in study.study.trials:
        attributes, chosen = trial.user_attrs, trial.params
        held = attributes.get("peak_bytes")
        complete = trial.state.name == "COMPLETE"  # a pruned one has its last report as value
        if complete:
            scored.append(trial)
        rows.append(
            (
                str(trial.number),
                *(str(chosen[name]) for name in ("width", "batch", "threads", "workers")),
                format_bytes(attributes["share_bytes"]),
                "-" if held is None else format_bytes(held),
                f"{trial.value:+.2f} %" if complete else trial.state.name.lower(),
            )
        )
        reasons += [
            f"trial {trial.number}: {attributes[key]}"
            for key in ("reason", "rollout")
            if key in attributes
        ]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_COLUMNS))]
    for row in rows:
        yield "  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True))
    yield from reasons
    if scored:
        best = max(scored, key=lambda trial: float(trial.value or 0))
        yield f"best: trial {best.number} with {best.value:+.2f} % on held-out prices"
    yield (
        f"a trial takes {format_bytes(study.base.private)} before it has any size, a worker "
        f"{format_bytes(study.base.worker)}, files that all share {format_bytes(study.base.files)}"
    )
    yield (
        f"peak {format_bytes(study.peak)} of the limit of {format_bytes(study.limit)}, at most "
        f"{study.most_side_by_side} trials side by side"
    )
