"""MF506: this version of gymnasium keeps the frames of a recorded video.

What: a pin keeps gymnasium below 1.2.1, and the script records with `RecordVideo`.

Why: up to 1.2.0 the clip that was written went on to hold its frames, so that memory grew with each
video (Gymnasium#1377). From 1.2.1 on they are let go.

Bad:
    # /// script
    # dependencies = ["gymnasium==1.1.1"]
    # ///
    from gymnasium.wrappers import RecordVideo

    env = RecordVideo(env, "videos")

Good:
    # /// script
    # dependencies = ["gymnasium>=1.2.1"]
    # ///
    from gymnasium.wrappers import RecordVideo

    env = RecordVideo(env, "videos")
"""

from __future__ import annotations

from collections.abc import Iterator

from memfit.checks._versions import pinned_below
from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, calls

CODE = "MF506"
SEVERITY = Severity.WARNING


def find_in_source(source: Source) -> Iterator[Spot]:
    recorders = list(calls(source, ("gymnasium",), ("RecordVideo",)))
    pin = pinned_below(source, "gymnasium", (1, 2, 1)) if recorders else ""
    for call in recorders if pin else []:
        yield Spot(call, f"with {pin} the frames of each video stay in memory", "gymnasium>=1.2.1")
