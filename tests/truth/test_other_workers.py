"""Workers of a vector env that no library's file knows have a row that grows with the envs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.truth import kernel

pytestmark = [pytest.mark.truth, pytest.mark.alone, pytest.mark.torch, pytest.mark.timeout(240)]

TABLE = 24 * 2**20  # what an env of the script holds


@pytest.mark.parametrize("envs", [4, pytest.param(8, marks=pytest.mark.slow)])
def test_processes_that_the_script_started_have_a_row(envs: int, tmp_path: Path) -> None:
    """Planned with four of them, and asked for as many again."""
    answer, _ = kernel.plan("ppo_async.py", "--set", f"n_envs={envs}", "--", "4", cwd=tmp_path)
    rows = {row["name"]: row for row in answer["components"]}
    forks = rows["workers.forks"]
    assert forks["formula"].startswith("n_envs * ")
    assert envs * TABLE < forks["bytes"] < envs * 1.5 * TABLE
    true = kernel.run("ppo_async.py", str(envs), cwd=tmp_path).peak
    figures = f"planned {answer['peak_bytes'] / 2**20:.0f}, true {true / 2**20:.0f} MiB"
    assert answer["peak_bytes"] == pytest.approx(true, rel=0.05), figures
    assert true <= answer["upper_bytes"], figures
