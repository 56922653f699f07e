"""What `memfit plan --for` asks for is enough where the kernel keeps a limit, and half is not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from memfit.measure.kernel.cgroup import memory_group
from tests.faults import groups_permitted
from tests.truth import kernel

pytestmark = [pytest.mark.truth, pytest.mark.slow, pytest.mark.torch]


@pytest.mark.skipif(not groups_permitted(), reason="no memory group can be made here")
@pytest.mark.parametrize("script", ["ppo_workers.py", "dqn_frames.py"])
def test_a_run_lives_within_what_was_asked_for(tmp_path: Path, script: str) -> None:
    answer, _ = kernel.plan(script, "--for", "docker", cwd=tmp_path)
    asked = answer["request"]["memory_bytes"]
    assert f"--memory={asked >> 20}m" in answer["request"]["paste"]
    assert run_within(asked, script, tmp_path) == 0
    assert run_within(asked // 2, script, tmp_path) != 0


def run_within(limit: int, script: str, folder: Path) -> int:
    """The exit code of a script in a memory group of its own."""
    with memory_group(limit) as group:
        assert group is not None
        joins = 'echo $$ > "$0" && exec "$@"'
        words = [str(group.path / "cgroup.procs"), sys.executable, str(kernel.SCRIPTS / script)]
        process = subprocess.Popen(
            ["/bin/sh", "-c", joins, *words],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return process.wait(180)
        finally:
            process.kill()
            process.wait()
