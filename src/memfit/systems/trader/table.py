"""A study's result as lines of text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from memfit.units import format_bytes

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

    from memfit.systems.trader.study import Study

_COLUMNS = ("trial", "width", "batch", "threads", "workers", "planned", "given", "held", "score")
_CUT = "did not say done within"


def lines(study: Study) -> Iterator[str]:
    """A row for each trial: planned, given and held; then what ended some, and the best."""
    rows: list[tuple[str, ...]] = [_COLUMNS]
    reasons, scored = [], []
    for trial in study.study.trials:
        facts, chosen = trial.user_attrs, trial.params
        complete = trial.state.name == "COMPLETE"  # a pruned one may have a value too
        if complete:
            scored.append(trial)
        rows.append(
            (
                str(trial.number),
                *(str(chosen.get(name, "-")) for name in ("width", "batch", "threads", "workers")),
                _bytes(facts.get("plan", {}).get("upper_bytes")),
                _bytes(facts.get("share_bytes")),
                _bytes(facts.get("peak_bytes")),
                f"{trial.value:+.2f} %" if complete else trial.state.name.lower(),
            )
        )
        told = [facts["reason"]] if "reason" in facts else []
        reasons += [f"trial {trial.number}: {text}" for text in (*told, *_said(trial))]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_COLUMNS))]
    for row in rows:
        yield "  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True))
    yield from reasons
    if scored:
        best = max(scored, key=lambda trial: float(trial.value or 0))
        yield f"best: trial {best.number} with {best.value:+.2f} % on held-out prices"
    room = study.bounded.room
    yield f"limit {format_bytes(room.limit)}, at most {room.most_at_once} trials side by side"


def _bytes(amount: int | None) -> str:
    return "-" if amount is None else format_bytes(amount)


def _said(trial: FrozenTrial) -> Iterator[str]:
    """What a trial's program said of episodes that it had to end."""
    if output := trial.user_attrs.get("output"):
        path = Path(output)
        text = path.read_text(errors="replace") if path.exists() else ""
        yield from (line for line in text.splitlines() if _CUT in line)
