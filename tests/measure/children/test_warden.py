"""Nothing of a disposable child outlives it, or memfit, however that ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from memfit.measure.children import sandbox
from memfit.measure.children.way import Way
from memfit.measure.kernel import proc
from memfit.model.job import Job, Status, TargetKind

# Children that leave their session, their environment and their parent behind.
DAEMONS = """
import os, subprocess, sys, time
sleep = [sys.executable, "-S", "-c", "import time; time.sleep(300)", "{mark}"]
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        subprocess.Popen(sleep, env={{}}, start_new_session=True)
        os._exit(0)
    os.wait()
while b"{mark}" not in b"".join(
    open(f"/proc/{{p}}/cmdline", "rb").read() for p in os.listdir("/proc") if p.isdigit()
):
    time.sleep(0.01)
print("all have started", flush=True)
"""
MEMFIT = """
import sys
from memfit.measure.children import sandbox
from memfit.measure.children.way import Way
from memfit.model.job import Job, TargetKind
job = Job(kind=TargetKind.SCRIPT, target=sys.argv[1])
sandbox.run(job, timeout=60, memory=2**31, way=Way(sys.argv[2]))
"""


def with_mark(mark: str) -> list[int]:
    return [pid for pid in proc.processes() if mark in proc.text(f"/proc/{pid}/cmdline")]


def waited_for(what: Callable[[], bool], seconds: float = 20.0) -> bool:
    end = time.monotonic() + seconds
    while not what() and time.monotonic() < end:
        time.sleep(0.02)
    return what()


@pytest.mark.parametrize("way", Way)
def test_daemons_end_with_the_script(tmp_path: Path, way: Way) -> None:
    mark = f"mark-of-{tmp_path.name}"
    script = tmp_path / "train.py"
    script.write_text(DAEMONS.format(mark=mark))
    job = Job(kind=TargetKind.SCRIPT, target=str(script))
    ended = sandbox.run(job, timeout=60, memory=2**31, way=way)
    assert "all have started" in ended.output
    assert ended.answer.status is Status.NEVER_LEARNED
    assert with_mark(mark) == []


@pytest.mark.parametrize("way", Way)
def test_all_ends_with_memfit_however_it_ends(
    tmp_path: Path, way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = f"mark-of-{tmp_path.name}"
    (tmp_path / "t").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "t"))
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "train.py"
    script.write_text(DAEMONS.format(mark=mark) + "time.sleep(300)")
    words = [sys.executable, "-c", MEMFIT, script.name, way, mark]
    with subprocess.Popen(words) as memfit:
        assert waited_for(lambda: len(with_mark(mark)) == 4)  # memfit itself is one of them
        below = proc.descendants(memfit.pid)
        folders = {proc.environment(pid).get("TMPDIR", "") for pid in below} - {""}
        scratch = [Path(folder).parents[1] for folder in folders if "memfit-" in folder]
        assert scratch and all(folder.exists() for folder in scratch)
        memfit.send_signal(signal.SIGKILL)
    assert waited_for(lambda: not with_mark(mark))
    assert waited_for(lambda: not any(folder.exists() for folder in scratch))
    assert waited_for(lambda: not any(proc.resident(pid) for pid in below))


def test_a_kernel_without_namespaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told once, and the next child does not ask again."""
    monkeypatch.setattr(sandbox, "_refusals", ["Operation not permitted"])
    script = tmp_path / "train.py"
    script.write_text("open('new', 'w')")
    job = Job(kind=TargetKind.SCRIPT, target=str(script))
    monkeypatch.chdir(tmp_path)
    ended = sandbox.run(job, timeout=60, memory=2**31)
    assert ended.answer.status is Status.NEVER_LEARNED
    assert ended.answer.confinement in ("landlock", "auditing")
    assert "no namespaces (Operation not permitted)" in ended.notes[0]
    assert not Path("new").exists()
