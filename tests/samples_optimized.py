"""An optimized run, made by hand."""

from __future__ import annotations

from memfit.model import Changes
from memfit.model.changes import ALGORITHM, ROLLOUT, WORKERS
from memfit.model.optimized import Goal, Optimized, TriedFix
from memfit.units import GIB, MIB

WINDOWS = TriedFix(
    codes=("MF011",),
    change="rollout_buffer_class=memfit.dropins.WindowRolloutBuffer: each frame once",
    saves_bytes=101 * MIB,
    safe=True,
    changes=Changes(parts={ROLLOUT: "WindowRolloutBuffer"}),
    peak_bytes=924 * MIB,
    measured_bytes=100 * MIB,
    identical=True,
    time_ratio=0.97,
    time_noise=0.05,
)
PIECES = TriedFix(
    codes=("MF004",),
    change="memfit.dropins.MicroBatchPPO(..., micro_batch_size=64): the same gradient, in pieces",
    saves_bytes=410 * MIB,
    safe=False,
    to_rounding=True,
    costs="an update takes longer the smaller the pieces are",
    changes=Changes(parts={ALGORITHM: "MicroBatchPPO"}, options={"micro_batch_size": 64}),
    peak_bytes=624 * MIB,
    measured_bytes=400 * MIB,
    identical=False,
    time_ratio=1.2,
    time_noise=0.05,
)
HALF = TriedFix(
    codes=("MF004",),
    change="batch_size=128: more and smaller steps",
    saves_bytes=200 * MIB,
    safe=False,
    changes=Changes(knobs={"batch_size": 128}),
    peak_bytes=814 * MIB,
    measured_bytes=210 * MIB,
    identical=False,
)
LIGHT = TriedFix(
    codes=("MF006",),
    change="vec_env_cls=memfit.dropins.LightVecEnv",
    saves_bytes=150 * MIB,
    safe=True,
    changes=Changes(parts={WORKERS: "LightVecEnv"}),
    why_not="the run failed with it: EOFError",
)


def optimized() -> Optimized:
    """A run with a fix of each kind, one that could not be made, and a goal that is missed."""
    together = TriedFix(
        codes=("MF004", "MF011"),
        change=f"{PIECES.change}; {WINDOWS.change}",
        saves_bytes=505 * MIB,
        safe=False,
        to_rounding=True,
        changes=PIECES.changes.with_all(WINDOWS.changes),
        peak_bytes=524 * MIB,
        measured_bytes=500 * MIB,
        identical=False,
        time_ratio=1.16,
        time_noise=0.05,
    )
    return Optimized(
        target="train.py",
        peak_bytes=GIB,
        planned_bytes=1030 * MIB,
        upper_bytes=1100 * MIB,
        limit_bytes=8 * GIB,
        limit_source="RAM",
        tried=(PIECES, HALF, WINDOWS, LIGHT),
        together=together,
        goal=Goal(
            text="256MiB",
            bytes=256 * MIB,
            knobs={},
            reached=False,
            peak_bytes=524 * MIB,
            missing_bytes=268 * MIB,
        ),
        updates=32,
        cycles=3,
        runs=9,
        repeatable=True,
        patch="--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-PPO()\n+MicroBatchPPO()\n",
        written="fit.diff",
        notes=("a remark",),
        seconds=61.25,
    )
