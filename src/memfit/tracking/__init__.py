"""Phases and steps of a training, told from inside it to the recording of its memory.

`track()` for any program, `memfit.tracking.sb3.MemoryCallback` for stable-baselines3 and
`memfit.tracking.gym.MemoryWrapper` for Gymnasium; `tree_bytes()` and `peak_bytes()` for a program
that only asks how much it holds, `memfit.tracking.guard` for one that has a limit to keep, and
`memfit.tracking.side_by_side` for one that starts several.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memfit.tracking.usage import peak_bytes, peaks_below, tree_bytes

if TYPE_CHECKING:
    from memfit.tracking.tracker import Tracker, track

__all__ = ["Tracker", "peak_bytes", "peaks_below", "track", "tree_bytes"]


def __getattr__(name: str) -> Any:
    if name not in ("Tracker", "track"):
        raise AttributeError(f"memfit.tracking has no {name!r}")
    from memfit.tracking import tracker  # who only asks how much it holds records nothing

    return getattr(tracker, name)
