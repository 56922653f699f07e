"""What is pasted into batch systems, and what Slurm says of finished jobs."""

from __future__ import annotations

import ast
import json
import shlex
from dataclasses import replace

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from memfit.errors import UsageError
from memfit.integrations import docker, kubernetes, ray, slurm
from memfit.model import FinishedJob, MemoryRequest
from memfit.units import GIB, KIB, MIB

REQUEST = MemoryRequest(
    system="slurm",
    paste="",
    peak_bytes=900 * MIB,
    upper_bytes=1000 * MIB,
    kernel_bytes=2 * MIB - 5,
    shared_bytes=0,
)
SHARED = replace(REQUEST, shared_bytes=100 * MIB + 1)


def test_what_is_asked_for_is_the_upper_bound_and_page_tables_in_whole_mib() -> None:
    assert REQUEST.memory_mib == 1002
    assert REQUEST.margin_bytes == 102 * MIB


@given(st.integers(1, 2**50), st.integers(0, 2**40))
def test_it_is_never_less_than_both_nor_a_mib_more(upper: int, kernel: int) -> None:
    request = replace(REQUEST, upper_bytes=upper, kernel_bytes=kernel)
    assert 0 <= request.memory_bytes - upper - kernel < MIB


def test_slurm_takes_megabytes_of_1024() -> None:
    assert slurm.paste(REQUEST) == "#SBATCH --mem=1002M\n"


def test_a_pod_asks_for_as_much_as_it_may_have() -> None:
    pod = yaml.safe_load(kubernetes.paste(REQUEST))
    assert pod["containers"][0]["resources"] == {
        "requests": {"memory": "1002Mi"},
        "limits": {"memory": "1002Mi"},
    }
    assert "volumes" not in pod


def test_a_pod_has_room_in_shared_memory_where_the_run_lies_there() -> None:
    pod = yaml.safe_load(kubernetes.paste(SHARED))
    assert pod["volumes"][0]["emptyDir"] == {"medium": "Memory", "sizeLimit": "101Mi"}
    mounted = pod["containers"][0]["volumeMounts"][0]
    assert (mounted["name"], mounted["mountPath"]) == (pod["volumes"][0]["name"], "/dev/shm")


def test_a_container_keeps_the_shared_memory_that_it_has_by_itself() -> None:
    assert shlex.split(docker.paste(REQUEST))[2:4] == ["--memory=1002m", "--shm-size=64m"]
    assert shlex.split(docker.paste(SHARED))[3] == "--shm-size=101m"


def test_ray_takes_bytes() -> None:
    decorator, call = ray.paste(REQUEST).splitlines()
    given = ast.parse(decorator[1:], mode="eval").body
    assert isinstance(given, ast.Call)
    assert ast.literal_eval(given.keywords[0].value) == 1002 * MIB
    ast.parse(call)


JOBS = """\
JobID|JobName|State|ReqMem|MaxRSS|TRESUsageInTot
101|ppo|COMPLETED|2G||
101.batch|batch|COMPLETED||812340K|cpu=00:10:00,mem=812340K,pages=3
101.0|python|COMPLETED||400M|cpu=00:10:00,mem=1.50G
102|a|b|OUT_OF_MEMORY|512Mn||
102.batch|batch|OUT_OF_MEMORY||524288K|
103|ppo|CANCELLED by 1000|2000Mc|0|
104|ppo|RUNNING|2G||
"""


def test_a_job_took_what_its_largest_step_took() -> None:
    first, second, third = slurm.finished_jobs(JOBS)
    assert first == FinishedJob(
        job="101",
        name="ppo",
        state="COMPLETED",
        requested_bytes=2 * GIB,
        peak_bytes=1536 * MIB,
    )
    assert second.name == "a|b"
    assert second.out_of_memory
    assert (second.requested_bytes, second.peak_bytes) == (512 * MIB, 524288 * KIB)
    assert (third.requested_bytes, third.peak_bytes) == (None, None)


@pytest.mark.parametrize(
    "text", ["", "\n", "JobID|State\n1|COMPLETED\n", "JobID State MaxRSS\n", json.dumps({})]
)
def test_other_files_are_refused_with_the_command_that_writes_one(text: str) -> None:
    with pytest.raises(UsageError, match="sacct -P"):
        slurm.finished_jobs(text)


def test_a_line_that_was_cut_off_is_named() -> None:
    with pytest.raises(UsageError, match="line 3"):
        slurm.finished_jobs("JobID|State|MaxRSS\n1|COMPLETED|5K\n2|COMP\n")


@given(st.text(alphabet="JobID|StateMxRS\n\r\x1b0123456789.K", max_size=200))
def test_no_text_breaks_it(text: str) -> None:
    try:
        jobs = slurm.finished_jobs("JobID|State|MaxRSS\n" + text)
    except UsageError:
        return
    assert all("\x1b" not in job.job + job.state for job in jobs)
