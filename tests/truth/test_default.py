"""Plans against what the kernel counts when the same scripts run: as near as is published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pytest

from tests.truth import kernel
from tests.truth.published import bounds, published

pytestmark = [pytest.mark.truth, pytest.mark.alone]

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


def compare(script: str, true: int, *words: str, folder: Path) -> Compared:
    answer, _ = kernel.plan(script, *words, cwd=folder)
    return Compared(
        script=script, planned=answer["peak_bytes"], upper=answer["upper_bytes"], true=true
    )


def compared_all(scripts: Sequence[str], folder: Path, *ways: str) -> list[list[Compared]]:
    """Scripts run as they are, and planned in each way (`--probe` or none)."""
    true = {script: kernel.run(script, cwd=folder).peak for script in scripts}
    words: dict[str, list[str]] = {"": [], "--probe": ["--probe"]}
    return [[compare(s, true[s], *words[way], folder=folder) for s in scripts] for way in ways]


def check(compared: Sequence[Compared], stage: str) -> None:
    table, allowed = "\n".join(map(str, compared)), bounds(stage)
    assert median(c.error for c in compared) <= allowed.median, table
    assert max(c.error for c in compared) <= allowed.worst, table


@pytest.mark.timeout(300)
@pytest.mark.parametrize("scripts", [SCRIPTS[:3], pytest.param(SCRIPTS, marks=pytest.mark.slow)])
def test_plans_are_as_near_as_published_and_the_truth_is_within_their_bound(
    scripts: tuple[str, ...], tmp_path: Path
) -> None:
    """One test for all: their median is part of what is promised."""
    (compared,) = compared_all(scripts, tmp_path, "")
    check(compared, "plan")
    assert all(c.true <= c.upper for c in compared), "\n".join(map(str, compared))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_rehearsed_plans_are_as_near_as_published(tmp_path: Path) -> None:
    """Whether they are nearer than plain ones only many runs can tell: see the published table."""
    (rehearsed,) = compared_all(SCRIPTS, tmp_path, "--probe")
    check(rehearsed, "probe")


def test_what_is_published_is_worth_holding() -> None:
    """A broken reading of the results would make the bounds wide, or zero."""
    plain, rehearsed = published("plan"), published("probe")
    for spread in (plain, rehearsed):
        assert spread.median is not None and spread.p95 is not None and spread.worst is not None
        assert 0 < spread.median < spread.p95 < spread.worst < 0.2
    assert bounds("probe").median < bounds("plan").median
