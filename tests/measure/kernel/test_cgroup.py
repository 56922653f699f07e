"""A memory group whose processes cannot all be ended holds nobody up."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from memfit.measure.kernel import cgroup


@pytest.mark.parametrize("error", [None, ProcessLookupError, PermissionError])
def test_processes_that_do_not_end_are_given_up(
    error: type[OSError] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "memory.events").write_text("oom_kill 1\n")
    (tmp_path / "cgroup.procs").write_text("4711\n4712\n")
    asked: set[int] = set()

    def kill(pid: int, number: int) -> None:
        asked.add(pid)
        if error is not None:
            raise error

    monkeypatch.setattr("os.kill", kill)
    monkeypatch.setattr(cgroup, "_ENDING_SECONDS", 0.1)
    began = time.monotonic()
    cgroup.Group(tmp_path).end_if_killed()
    assert asked == {4711, 4712} and time.monotonic() - began < 5
