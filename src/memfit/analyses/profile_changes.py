"""What changed between two profiles of an environment, and whether by more than noise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from memfit.model.profile import BaselineChange, Counted, Profile
from memfit.units import KIB, MIB

# What two profiles of the same environment differ by: of the value, and at least in bytes.
_NOISE, _PAGES, _EXACT = 0.03, MIB, 4 * KIB


def changes(before: Mapping[str, Any], now: Profile) -> Iterator[BaselineChange]:
    """Rows that both have; `before` is the JSON of the earlier one."""
    judged = now.judgement
    warm = now.readings[0]
    first = (before.get("readings") or [{}])[0]
    used = first.get("in_use") or {}
    parts = {part["key"]: part.get("bytes") for part in before.get("observation") or ()}
    rows: list[tuple[str, Any, float | None, float]] = [
        ("bytes_per_frame", before.get("bytes_per_frame"), judged.bytes_per_frame, 16.0),
        ("bytes_per_env", before.get("bytes_per_env"), now.bytes_per_env, _PAGES / 4),
        ("bytes_per_worker", before.get("bytes_per_worker"), now.bytes_per_worker, _PAGES),
        ("after warm-up", first.get("held_bytes"), warm.held, _PAGES),
        *(
            (what.value, used.get(what.value), warm.counts.get(what), _EXACT * 16)
            for what in (Counted.PYTHON, Counted.MALLOC)
        ),
        *(
            (what.value, used.get(what.value), warm.counts.get(what), 0.5)
            for what in (Counted.THREADS, Counted.FILES)
        ),
        (
            "allocated_per_step",
            before.get("allocated_per_step"),
            now.stepped.allocated_per_step,
            _EXACT,
        ),
        *(
            (f"observation {part.key}", parts.get(part.key), part.bytes, 0.5)
            for part in now.stepped.observation
        ),
    ]
    for name, then, value, least in rows:
        if not isinstance(then, (int, float)) or isinstance(then, bool) or value is None:
            continue
        noise = max(least, _NOISE * abs(then) if least > 1 else least)
        yield BaselineChange(
            name=name,
            before=float(then),
            after=float(value),
            beyond_noise=abs(value - then) > noise,
        )
