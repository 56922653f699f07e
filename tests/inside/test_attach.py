"""A running Python is made to listen where the interpreter can do that, and a message elsewhere.

The interpreter's own call is there from Python 3.14 on; where it is not, what it does with the
script is played by the target itself, which runs the file whose name it is given.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from memfit.errors import MemfitError, Unsupported, UsageError
from memfit.measure.live import listener_client

SECONDS = 30.0
RUNS_FILES = """
import sys
held = [bytearray(500_000)]
for line in sys.stdin:
    exec(open(line.strip()).read(), {})
print("well")
"""


@pytest.fixture
def target() -> Iterator[subprocess.Popen[str]]:
    without = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    with subprocess.Popen(
        [sys.executable, "-c", RUNS_FILES],
        env=without,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.kill()


def test_a_target_is_made_to_listen(
    target: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    scripts: list[Path] = []

    def remote_exec(pid: int, script: str) -> None:
        assert pid == target.pid and target.stdin is not None
        scripts.append(Path(script))
        target.stdin.write(f"{script}\n")
        target.stdin.flush()

    monkeypatch.setattr(sys, "remote_exec", remote_exec, raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert listener_client.ask(target.pid, duplicates=False, timeout=5) is None
    listener_client.attach(target.pid)
    listener_client.attach(target.pid)  # it listens: nothing is run a second time
    answer = listener_client.ask(target.pid, duplicates=False, timeout=SECONDS)
    assert answer is not None
    assert any(row["holder"] == "held" for row in answer["python"])
    assert len(scripts) == 1 and not scripts[0].exists()
    assert list(tmp_path.iterdir()) == []
    out, err = target.communicate(timeout=SECONDS)
    assert (target.returncode, out, err) == (0, "well\n", "")


@pytest.mark.parametrize(
    ("error", "expected", "word"),
    [
        (PermissionError("no"), UsageError, "root"),
        (ProcessLookupError("gone"), UsageError, "ended"),
        (RuntimeError("another version"), Unsupported, "another version"),
    ],
)
def test_what_hinders_it_is_said(
    target: subprocess.Popen[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    error: Exception,
    expected: type[MemfitError],
    word: str,
) -> None:
    def remote_exec(pid: int, script: str) -> None:
        raise error

    monkeypatch.setattr(sys, "remote_exec", remote_exec, raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(expected, match=word):
        listener_client.attach(target.pid)
    assert list(tmp_path.iterdir()) == []


def test_a_python_without_the_call_says_what_to_do(
    target: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(sys, "remote_exec", raising=False)
    with pytest.raises(Unsupported, match=r"3\.14.*memfit run"):
        listener_client.attach(target.pid)


def test_a_target_that_ends_meanwhile_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def remote_exec(pid: int, script: str) -> None: ...

    monkeypatch.setattr(sys, "remote_exec", remote_exec, raising=False)
    with pytest.raises(UsageError, match="ended"):
        listener_client.attach(2**22 + 1)
