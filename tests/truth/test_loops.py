"""Training loops of nobody's library: what is planned beside what a real run comes to."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.truth import kernel

pytestmark = [pytest.mark.truth, pytest.mark.alone, pytest.mark.timeout(300)]

MIB = 2**20
NEAR = 0.08  # what 95 of 100 loops are to keep


def near(answer: dict[str, int], true: int) -> None:
    figures = f"planned {answer['peak_bytes'] / MIB:.0f}, true {true / MIB:.0f} MiB"
    assert abs(answer["peak_bytes"] - true) <= NEAR * true, figures
    assert answer["upper_bytes"] >= true, figures


def test_a_training_without_any_env(tmp_path: Path) -> None:
    answer, _ = kernel.plan("loop_supervised.py", "--quick", cwd=tmp_path)
    assert answer["method"] == "trial"
    assert {"inputs", "net.parameters", "optimizer.state"} <= {
        row["name"] for row in answer["components"]
    }
    near(answer, kernel.run("loop_supervised.py", cwd=tmp_path).peak)


@pytest.mark.slow
def test_a_ppo_in_one_file(tmp_path: Path) -> None:
    answer, _ = kernel.plan("loop_ppo.py", cwd=tmp_path)
    rows = {row["name"]: row for row in answer["components"]}
    assert rows["obs"]["formula"].startswith("num_steps * num_envs * "), "width shapes networks"
    assert rows["obs"]["evidence"]["kind"] == "derived"
    near(answer, kernel.run("loop_ppo.py", cwd=tmp_path).peak)


@pytest.mark.slow
def test_what_if_a_ppo_had_twice_the_envs(tmp_path: Path) -> None:
    answer, _ = kernel.plan("loop_ppo.py", "--set", "num_envs=8", "--quick", cwd=tmp_path)
    assert answer["knobs"]["num_envs"] == 8
    words = ("--num-envs", "8", "--total-timesteps", "5120")
    near(answer, kernel.run("loop_ppo.py", *words, cwd=tmp_path).peak)


@pytest.mark.slow
def test_a_dqn_whose_replay_is_filled_later(tmp_path: Path) -> None:
    answer, _ = kernel.plan("loop_dqn.py", cwd=tmp_path)
    rows = {row["name"]: row for row in answer["components"]}
    assert rows["rb.observations"]["bytes"] == 1200 * 4 * 84 * 84
    assert rows["rb.observations"]["reserved_bytes"] == 3000 * 4 * 84 * 84
    assert any("played back" in note for note in answer["notes"])
    near(answer, kernel.run("loop_dqn.py", cwd=tmp_path).peak)
