"""Phases and steps of a training, told from inside it to the recording of its memory.

`track()` for any program, `memfit.tracking.sb3.MemoryCallback` for stable-baselines3 and
`memfit.tracking.gym.MemoryWrapper` for Gymnasium.
"""

from memfit.tracking.tracker import Tracker, track

__all__ = ["Tracker", "track"]
