"""Plans for batch systems, and plans beside the jobs that ran them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memfit import render
from memfit.api.memory_request import SYSTEMS, check_system, compare_jobs, memory_request
from memfit.cli import main
from memfit.errors import UsageError
from memfit.units import KIB, MIB
from tests import samples

JOBS = """\
JobID|JobName|State|ReqMem|MaxRSS
7|ppo|COMPLETED|2G|
7.batch|batch|COMPLETED||{first}K
8|ppo|OUT_OF_MEMORY|1G|
8.batch|batch|OUT_OF_MEMORY||{second}K
9|ppo|FAILED|1G|
"""


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_is_told_the_upper_bound_and_page_tables(system: str) -> None:
    plan = samples.ppo_plan()
    request = memory_request(plan, system)
    least = plan.upper_bytes + plan.upper_bytes // 512
    assert least <= request.memory_bytes < least + 2 * MIB
    told = {str(request.memory_mib), f"{request.memory_bytes:_}"}
    assert any(amount in request.paste for amount in told)
    data = render.request_json(plan, request)
    assert data["kind"] == "plan"
    assert data["request"]["memory_bytes"] == request.memory_bytes
    assert request.paste.splitlines()[0] in render.to_markdown(render.request_blocks(plan, request))


def test_unknown_systems_are_refused_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError, match="slurm, kubernetes, ray, docker"):
        check_system("pbs")
    script = tmp_path / "train.py"
    script.write_text("raise SystemExit('must not run')")
    assert main(["plan", str(script), "--for", "pbs"]) == 2
    assert "slurm" in capsys.readouterr().err


def files(folder: Path, first: int, second: int) -> tuple[Path, Path]:
    """A plan as it is written, and two jobs that took so much."""
    plan, jobs = folder / "plan.json", folder / "jobs.txt"
    plan.write_text(json.dumps(render.plan_json(samples.ppo_plan())))
    jobs.write_text(JOBS.format(first=first // KIB, second=second // KIB))
    return plan, jobs


def test_jobs_are_held_against_peak_and_bound(tmp_path: Path) -> None:
    planned = samples.ppo_plan()
    within, above = planned.peak_bytes // KIB * KIB, planned.upper_bytes + MIB
    found = compare_jobs(*files(tmp_path, within, above))
    assert [job.job for job in found.above_upper] == ["8"]
    assert len(found.measured) == 2
    assert found.share == pytest.approx(above / planned.peak_bytes - 1, abs=1e-5)
    assert "1 ended before" in found.notes[1]
    text = render.to_markdown(render.jobs_blocks(found))
    assert "1 of 2 jobs took more than the upper bound" in text
    assert "1 of 3 jobs were killed" in text
    assert render.jobs_json(found)["above_upper"] == 1


def test_compare_says_so_with_its_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    peak = samples.ppo_plan().peak_bytes
    plan, jobs = map(str, files(tmp_path, peak, peak + peak // 10))
    assert main(["compare", plan, "--sacct", jobs]) == 0
    assert main(["compare", plan, "--sacct", jobs, "--fail-if-grew", "5%"]) == 3
    assert main(["compare", plan, "--sacct", jobs, "--fail-if-grew", "20%"]) == 0
    capsys.readouterr()
    assert main(["compare", plan]) == 2
    assert main(["compare", plan, plan, "--sacct", jobs]) == 2
    assert main(["compare", jobs, "--sacct", jobs]) == 2
    assert "memfit plan TARGET --format json" in " ".join(capsys.readouterr().err.split())
    assert main(["compare", plan, "--sacct", plan]) == 2
    assert main(["compare", plan, "--sacct", str(tmp_path / "none")]) == 2


def test_a_job_that_never_ended_is_no_job(tmp_path: Path) -> None:
    plan, jobs = files(tmp_path, MIB, MIB)
    jobs.write_text("JobID|State|MaxRSS\n1|RUNNING|\n")
    with pytest.raises(UsageError, match="no job that has ended"):
        compare_jobs(plan, jobs)
