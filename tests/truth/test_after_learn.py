"""What follows learn() is in the plan: the pictures of a video, against the kernel's count."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.truth import kernel

pytestmark = [pytest.mark.truth, pytest.mark.alone, pytest.mark.torch, pytest.mark.timeout(240)]

FRAME = 256 * 256 * 3


@pytest.mark.parametrize("steps", [2000, pytest.param(7000, marks=pytest.mark.slow)])
def test_a_video_after_training_is_planned(steps: int, tmp_path: Path) -> None:
    """Of the long one, which takes more than a plan lets it, the rest is known by its length."""
    answer, _ = kernel.plan("ppo_video.py", "--", str(steps), cwd=tmp_path)
    rows = {row["name"]: row for row in answer["components"]}
    assert rows["after.recording"]["bytes"] == (steps + 1) * FRAME
    assert rows["after.recording"]["formula"] == f"video_frames * {FRAME:,}"
    assert answer["peak_moment"] == "evaluate.after"
    true = kernel.run("ppo_video.py", str(steps), cwd=tmp_path).peak
    figures = f"planned {answer['peak_bytes'] / 2**20:.0f}, true {true / 2**20:.0f} MiB"
    assert answer["peak_bytes"] == pytest.approx(true, rel=0.05), figures
    assert true <= answer["upper_bytes"], figures
