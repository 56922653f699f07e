"""What a script does once it has learned: what was measured of it, nothing having been trained."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class AfterEnd(StrEnum):
    """Why the look at the rest of a script ended."""

    WHOLE = "whole"  # the script came to its own end
    TIME = "time"
    MEMORY = "memory"  # it took more than there was room for
    ENOUGH = "enough"  # pictures pile up as they will, and how many is known
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True)
class HeldFrames:
    """Pictures that pile up in a list.

    `holder` is where (`RecordVideo.recorded_frames`), `line` the script's line at work. The list
    stops at `video_length` pictures, an episode at `episode_steps`; 0 where nothing says so.
    `beside` is what the process had grown by, these pictures apart.
    """

    holder: str
    count: int
    each_bytes: int
    shape: tuple[int, ...]
    line: int
    video_length: int = 0
    episode_steps: int = 0
    beside: int = 0

    @property
    def bytes(self) -> int:
        return self.count * self.each_bytes


@dataclass(frozen=True, kw_only=True)
class AfterReading:
    """How far a script's tree rises above what it held where its last learn() returned.

    `line` is the script's line at the highest point, `calling` the function that it was in.
    `model_alive` says whether what would have been trained was still held then. `frames` are the
    pictures that took the most. Where the end was not the script's own, `ended_line` and `reason`
    say more.
    """

    grown: int
    line: int = 0
    calling: str = ""
    model_alive: bool = True
    frames: HeldFrames | None = None
    ended: AfterEnd = AfterEnd.WHOLE
    ended_line: int = 0
    reason: str = ""
