"""How much longer a loop takes because it is read: with readings and without, in turns."""

from __future__ import annotations

import time
from statistics import median
from typing import Any

from memfit.api.env_verdict import Follower
from memfit.measure.children import sandbox
from memfit.measure.profile.stepper import stepping
from memfit.model.job import Job, Look, TargetKind
from memfit.model.profile import Stepping
from memfit.sources.env_target import FACTORY

TARGET = "memfit.systems.ninja.env:NinjaEnv"
FRAMES, EVERY, TURNS = 2000, 100, 7


def _loop(*, read: bool) -> float:
    """Seconds of wall time from the first frame after warm-up to the last, readings included."""
    asked = Stepping(target=TARGET, kind=FACTORY)
    job = Job(kind=TargetKind.ENV, target=TARGET, look=Look.STEP, stepping=asked)
    with stepping(job, timeout=300.0, memory=sandbox.room()) as stepper:
        stepper.step(200, 200)
        follower = Follower(stepper, frames=FRAMES, every=EVERY, tell=lambda step: None)
        begun = time.perf_counter()
        if read:
            follower.read_on_the_way(200)
        else:
            stepper.step(200 + FRAMES, 200 + FRAMES)
        seconds = (time.perf_counter() - begun) / (stepper.said.frames - 200) * FRAMES
        stepper.end()
    return seconds


def measured() -> dict[str, Any]:
    """Both, in turns."""
    pairs = [(_loop(read=False), _loop(read=True)) for _ in range(TURNS)]
    return {
        "bare_seconds": [round(bare, 4) for bare, _ in pairs],
        "read_seconds": [round(read, 4) for _, read in pairs],
        "overhead": median(read / bare - 1 for bare, read in pairs),
        "frames": FRAMES,
        "every": EVERY,
    }
