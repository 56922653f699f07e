"""What planning itself costs, what a rehearsal adds, and when a run goes over its limit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.truth import kernel
from tests.truth.published import bounds

pytestmark = [pytest.mark.truth, pytest.mark.alone, pytest.mark.timeout(240)]

MIB = 2**20


@pytest.mark.slow
def test_a_rehearsed_plan_is_as_near_as_published(tmp_path: Path) -> None:
    """One script here; test_default.py holds all of them to it, and to be nearer than plain ones.

    Its upper bound is promised for 99 runs of 100, and one run of ppo_picture.py differs from the
    next by up to 5 %, which is malloc's doing.
    """
    answer, _ = kernel.plan("ppo_picture.py", "--probe", cwd=tmp_path)
    true = kernel.run("ppo_picture.py", cwd=tmp_path).peak
    figures = f"planned {answer['peak_bytes'] / MIB:.0f}, true {true / MIB:.0f} MiB"
    assert abs(answer["peak_bytes"] - true) <= bounds("probe").worst * true, figures


@pytest.mark.slow
def test_a_run_with_a_windowed_buffer_is_planned_with_what_that_stores(tmp_path: Path) -> None:
    answer, _ = kernel.plan("ppo_windows.py", cwd=tmp_path)
    true = kernel.run("ppo_windows.py", cwd=tmp_path).peak
    rows = {row["name"]: row["bytes"] for row in answer["components"]}
    frame = rows["minibatch.observations"] // 64 // 4
    assert rows["rollout_buffer.observations"] == 4 * (511 + 4) * frame + 4 * 512 * 4
    assert answer["peak_bytes"] == pytest.approx(true, rel=0.08)


@pytest.mark.slow
def test_what_if_a_minibatch_were_64_times_larger(tmp_path: Path) -> None:
    """What malloc keeps beside a rollout does not grow with the minibatch alone."""
    answer, _ = kernel.plan("ppo_batches.py", "--set", "batch_size=4096", "--", "64", cwd=tmp_path)
    true = kernel.run("ppo_batches.py", "4096", cwd=tmp_path).peak
    assert answer["peak_bytes"] == pytest.approx(true, rel=0.08)


@pytest.mark.xfail(
    strict=False,
    reason="476 to 508 MiB were measured, 541 before the steps of a replay were let go of",
)
def test_planning_a_run_of_100_gb_takes_little(tmp_path: Path) -> None:
    answer, planner = kernel.plan("dqn_huge.py", cwd=tmp_path)
    assert answer["peak_bytes"] > 2 * 2_000_000 * 4 * 84 * 84
    assert planner.peak <= 500 * MIB, f"{planner.peak / MIB:.0f} MiB"


@pytest.mark.parametrize(
    "start_method",
    ["fork", *(pytest.param(how, marks=pytest.mark.slow) for how in ("forkserver", "spawn"))],
)
def test_few_workers_are_started_however_many_are_asked_for(
    tmp_path: Path, start_method: str
) -> None:
    answer, planner = kernel.plan("ppo_many_workers.py", "--", start_method, cwd=tmp_path)
    assert 1 <= planner.names["truth-worker"] <= 2
    rows = {row["name"]: row for row in answer["components"]}
    assert answer["knobs"]["n_envs"] == 64
    assert rows["workers.private"]["bytes"] % 64 == 0


@pytest.mark.slow
def test_a_filling_replay_goes_over_the_limit_where_the_plan_says(tmp_path: Path) -> None:
    mark = tmp_path / "steps"
    true = kernel.run("dqn_frames.py", str(mark), cwd=tmp_path, mark=mark)
    last = true.marks[-1][0]
    # A limit that the run crosses half way.
    limit = next(amount for step, amount in true.marks if step >= last // 2)
    crossed = next(step for step, amount in true.marks if amount > limit)
    answer, _ = kernel.plan("dqn_frames.py", "--limit", str(limit), cwd=tmp_path)
    assert answer["fits"] is False
    assert answer["crossing"]["because"].startswith("replay_buffer.")
    assert abs(answer["crossing"]["step"] - crossed) <= 0.15 * last, answer["crossing"]
    assert "MF002" in {finding["code"] for finding in answer["findings"]}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["drone.toml", "fighter.toml"])
def test_a_described_system_is_planned_at_its_full_size(name: str, tmp_path: Path) -> None:
    """Gigabytes, thousands of samples, a rollout of a hundred steps whose graphs are kept."""
    planned = kernel.python("-m", "memfit", "plan", name, "--format", "json", "-q", cwd=tmp_path)
    assert planned.code in (0, 3), planned.err
    answer = json.loads(planned.out)
    assert answer["peak_bytes"] > 8 * 2**30
    assert answer["planner_peak_bytes"] < 2 * 2**30
