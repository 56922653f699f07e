"""A script that trains twice is planned for the call that needs more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memfit.cli import main

pytestmark = pytest.mark.torch

SCRIPT = """
from stable_baselines3 import PPO
first = PPO("MlpPolicy", "CartPole-v1", n_steps=64, batch_size=32)
first.learn(128)
{between}
second = PPO("MlpPolicy", "CartPole-v1", n_steps={n_steps}, batch_size=32)
second.learn(100_000)
"""


def planned(script: Path, text: str, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    script.write_text(text)
    assert main(["plan", str(script), "--format", "json", "-q"]) == 0
    told: dict[str, object] = json.loads(capsys.readouterr().out)
    return told


@pytest.mark.slow
def test_the_second_call_counts_what_the_first_leaves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = SCRIPT.format(between="", n_steps=100_000)
    told = planned(tmp_path / "train.py", text, capsys)
    assert told["knobs"]["n_steps"] == 100_000  # type: ignore[index]
    rows = {row["name"]: row for row in told["components"]}  # type: ignore[attr-defined]
    assert rows["earlier.learn"]["bytes"] > 0
    assert "second call needs the most" in " ".join(told["notes"])  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_first_call_that_needs_more_stays_the_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = SCRIPT.format(between="del first", n_steps=64).replace("n_steps=64", "n_steps=90_000", 1)
    told = planned(tmp_path / "train.py", text, capsys)
    assert told["knobs"]["n_steps"] == 90_000  # type: ignore[index]
    assert "first call needs the most" in " ".join(told["notes"])  # type: ignore[arg-type]
