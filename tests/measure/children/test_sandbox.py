"""A job in the sandbox ends at its limits, and what it took is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from memfit.measure.children import sandbox
from memfit.measure.children.private_files import remove
from memfit.model.job import Answer, Job, Status, TargetKind

MIB = 2**20


def job(folder: Path, text: str) -> Job:
    script = folder / "train.py"
    script.write_text(text)
    return Job(kind=TargetKind.SCRIPT, target=str(script))


def test_a_script_that_never_learns_is_ended_in_time(tmp_path: Path) -> None:
    waiting = job(tmp_path, "print('so far', flush=True)\nimport time\ntime.sleep(60)")
    ended = sandbox.run(waiting, timeout=3, memory=2**31)
    assert ended.answer == Answer(status=Status.TIMED_OUT, reason="3 s")
    assert "so far" in ended.output


def test_a_script_that_takes_too_much_is_ended(tmp_path: Path) -> None:
    told: list[int] = []
    growing = job(tmp_path, "held = []\nwhile True: held.append(bytearray(b'x') * 2**20)")
    ended = sandbox.run(growing, timeout=60, memory=300 * MIB, alive=told.append)
    assert ended.answer == Answer(status=Status.OVER_LIMIT, reason="300 MiB")
    assert 300 * MIB < ended.peak_bytes < 2**30
    assert told == sorted(told)


def test_a_script_that_ends_without_learning_says_how_and_what_it_took(tmp_path: Path) -> None:
    spike = "held = bytearray(b'x') * (150 * 2**20)\ndel held\nprint('done')\nraise SystemExit(0)"
    ended = sandbox.run(job(tmp_path, spike), timeout=60, memory=2**31)
    assert ended.answer.status is Status.NEVER_LEARNED
    assert "done" in ended.output
    assert 150 * MIB < ended.peak_bytes < 250 * MIB
    assert 0 < ended.outside_bytes < ended.peak_bytes


def test_ctrl_c_while_a_scratch_folder_is_removed_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times: list[str] = []
    folders: list[Path] = []

    def interrupted(folder: str) -> None:
        times.append(folder)
        if len(times) == 1:
            raise KeyboardInterrupt
        remove(folder)

    monkeypatch.setattr(sandbox, "remove", interrupted)
    waiting = job(tmp_path, "import time\ntime.sleep(60)")
    with pytest.raises(KeyboardInterrupt), sandbox.held(waiting) as child:
        folders.append(child.scratch.parent)
    assert len(times) == 2
    assert not folders[0].exists()
