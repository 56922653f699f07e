"""MF010: saving the replay buffer copies its largest array.

What: `CheckpointCallback(save_replay_buffer=True)` pickles the replay. With some versions of Python
and numpy, pickle turns one array after another into bytes beside the array itself, each whole and
whether it was filled or not. memfit tries that out with the versions at hand.

Why: the peak then comes in the save, hours after the start, above everything seen before. The file
is as large as the replay, every time.

Bad:
    CheckpointCallback(save_freq=50_000, save_path="checkpoints", save_replay_buffer=True)

Good:
    CheckpointCallback(save_freq=50_000, save_path="checkpoints")
"""

from __future__ import annotations

from collections.abc import Iterator

from memfit.checks._rows import named, without
from memfit.model import Finding, Fix, Ledger, RunSpec, Severity
from memfit.units import format_bytes

CODE = "MF010"
ROW = "save.replay_copy"


def find(spec: RunSpec, ledger: Ledger, limit: int) -> Iterator[Finding]:
    copied = named(ledger, [ROW])
    if not copied:
        return
    decides = ledger.peak.phase == "save"
    yield Finding(
        code=CODE,
        severity=Severity.WARNING if decides else Severity.INFO,
        message=f"each save copies {format_bytes(copied)} of the replay buffer"
        + (": the peak comes there" if decides else ""),
        where="callback: save_replay_buffer=True",
        bytes=copied,
    )


def fix(spec: RunSpec, ledger: Ledger) -> Iterator[Fix]:
    yield Fix(
        change="save_replay_buffer=False: a run that is resumed begins with an empty replay",
        ledger=without(ledger, ROW),
        safe=True,
    )
