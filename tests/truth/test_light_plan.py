"""A run with LightVecEnv is planned with its workers, at its own size and at three times that."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.truth import kernel

pytestmark = [pytest.mark.truth, pytest.mark.alone, pytest.mark.timeout(240)]

TABLE = 3 * 2**20  # what an env of the script holds


@pytest.mark.slow
@pytest.mark.parametrize("envs", [8, 24])
def test_workers_and_their_envs_have_rows(envs: int, tmp_path: Path) -> None:
    answer, _ = kernel.plan("ppo_light.py", "--set", f"n_envs={envs}", "--", "8", cwd=tmp_path)
    rows = {row["name"]: row["bytes"] for row in answer["components"]}
    assert rows["workers.envs"] == pytest.approx(envs * TABLE, rel=0.25)
    assert {"workers.private", "workers.helpers", "workers.shared_observations"} <= set(rows)
    true = kernel.run("ppo_light.py", str(envs), cwd=tmp_path).peak
    figures = f"planned {answer['peak_bytes'] / 2**20:.0f}, true {true / 2**20:.0f} MiB"
    assert answer["peak_bytes"] == pytest.approx(true, rel=0.05), figures
    assert true <= answer["upper_bytes"], figures
