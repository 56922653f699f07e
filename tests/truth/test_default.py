"""Plans made without a rehearsal, against what the kernel counts when the same scripts run."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pytest

from tests.truth import kernel

pytestmark = [pytest.mark.truth, pytest.mark.alone, pytest.mark.timeout(300)]

MEDIAN, WORST = 0.10, 0.20
SCRIPTS = (
    "a2c_cartpole.py",
    "dqn_frames.py",
    "ppo_picture.py",
    "ppo_sensors.py",
    "ppo_workers.py",
    "sac_pendulum.py",
)
MIB = 2**20


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One script: planned, and run."""

    script: str
    planned: int
    upper: int
    true: int

    @property
    def error(self) -> float:
        return abs(self.planned - self.true) / self.true

    def __str__(self) -> str:
        figures = f"planned {self.planned / MIB:.0f}, at most {self.upper / MIB:.0f}"
        return f"{self.script}: {figures}, true {self.true / MIB:.0f} MiB, off by {self.error:.1%}"


def compare(script: str, folder: Path) -> Compared:
    folder.mkdir()
    answer, _ = kernel.plan(script, cwd=folder)
    true = kernel.run(script, cwd=folder).peak
    return Compared(
        script=script, planned=answer["peak_bytes"], upper=answer["upper_bytes"], true=true
    )


def test_plans_are_near_the_truth_and_never_above_their_bound(tmp_path: Path) -> None:
    """One test for all: their median is part of what is promised."""
    with ThreadPoolExecutor(max_workers=2) as pool:
        compared = list(pool.map(lambda s: compare(s, tmp_path / s), SCRIPTS))
    table = "\n".join(map(str, compared))
    assert max(c.error for c in compared) <= WORST, table
    assert median(c.error for c in compared) <= MEDIAN, table
    assert all(c.true <= c.upper for c in compared), table
