"""The listener answers whoever may ask, survives whatever they do, and leaves no trace."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memfit.measure.children import launch
from memfit.measure.live import listener_client
from tests.inside.target import Target, asked

SECONDS = 30.0


def connected(pid: int) -> socket.socket:
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(SECONDS)
    try:
        client.connect(f"\0memfit.{pid}")
    except OSError:
        client.close()
        raise
    return client


def reply(pid: int, request: bytes) -> bytes:
    with connected(pid) as client:
        client.sendall(request)
        client.shutdown(socket.SHUT_WR)
        parts = []
        while part := client.recv(65536):
            parts.append(part)
        return b"".join(parts)


def test_bad_requests_are_answered_or_dropped(tmp_path: Path) -> None:
    with Target("ready()", tmp_path) as target:
        for request in (b"nonsense\n", b"[1]\n", b'{"want": "everything"}\n', b"\xff\xfe\n"):
            answer = json.loads(reply(target.pid, request))
            assert answer["schema"] == 1 and answer["error"]
        assert reply(target.pid, b"") == b""
        assert reply(target.pid, b"no end of line") == b""
        connected(target.pid).close()
        with connected(target.pid) as client:  # asks, and is gone before the answer
            client.sendall(b'{"want": "holders"}\n')
        assert target.ask().fields["pid"] == target.pid
        assert target.end() == ("", "")


def test_a_client_that_is_gone_does_not_end_a_target_that_dies_of_broken_pipes(
    tmp_path: Path,
) -> None:
    script = """
    import signal
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    ready()
    """
    with Target(script, tmp_path) as target:
        for _ in range(3):
            with connected(target.pid) as client:
                client.sendall(b'{"want": "holders"}\n')
        target.ask()
        target.end()


def test_an_answer_that_nobody_waits_for_is_given_up(tmp_path: Path) -> None:
    """Else the last one would wait for a dozen walks over millions of numbers, in vain."""
    script = """
    held = [float(n) for n in range(4_000_000)]
    ready()
    """
    with Target(script, tmp_path) as target:
        for _ in range(12):
            with connected(target.pid) as client:
                client.sendall(b'{"want": "holders"}\n')
        assert json.loads(reply(target.pid, b'{"want": "nothing"}\n'))["error"]
        target.end()


def test_nobody_listens_in_a_process_that_was_not_asked_to() -> None:
    with subprocess.Popen(["sleep", "30"]) as process:
        assert listener_client.ask(process.pid, duplicates=False, timeout=5) is None
        assert not listener_client.listens(process.pid)
        process.kill()
    assert listener_client.ask(2**22 + 1, duplicates=False, timeout=5) is None


def test_children_by_fork_answer_for_themselves(tmp_path: Path) -> None:
    """On 3.13 the parent listens again after its next garbage collection, not at once."""
    script = """
    import gc, os
    parents = [bytearray(300_000)]
    there, back = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        childs = [bytearray(400_000)]
        os.write(there[1], b"x")
        os.read(back[0], 1)
        os._exit(0)
    os.read(there[0], 1)
    gc.collect()
    ready()
    os.write(back[1], b"x")
    assert os.waitpid(child, 0)[1] == 0
    """
    with Target(script, tmp_path) as target:
        (number,) = Path(f"/proc/{target.pid}/task/{target.pid}/children").read_text().split()
        child = listener_client.ask(int(number), duplicates=False, timeout=SECONDS)
        assert child is not None and child["pid"] == int(number)
        own = target.ask()
        target.end()
    assert {row["holder"] for row in child["python"]} >= {"parents", "childs"}
    assert own.python("parents")["large_bytes"] >= 300_000
    assert "childs" not in {row["holder"] for row in own.fields["python"]}


def test_a_forking_program_sees_no_warning_of_a_second_thread(tmp_path: Path) -> None:
    script = """
    import os
    ready()
    for _ in range(20):
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)
    """
    with Target(script, tmp_path, "-W", "error") as target:
        target.ask()
        assert target.end() == ("", "")


def test_threads_of_the_target_are_its_own(tmp_path: Path) -> None:
    script = """
    import threading
    ready()
    print(threading.active_count(), [t.name for t in threading.enumerate()])
    """
    with Target(script, tmp_path) as target:
        target.ask()
        tasks = Path(f"/proc/{target.pid}/task").iterdir()
        assert "memfit" in {(task / "comm").read_text().strip() for task in tasks}
        assert target.end()[0].strip() == "1 ['MainThread']"


def test_a_daemon_that_closes_all_files_goes_on_and_answers(tmp_path: Path) -> None:
    script = """
    import os
    os.closerange(3, 4096)
    kept = [open(os.devnull) for _ in range(5)]
    ready()
    assert all(not file.closed and os.fstat(file.fileno()) for file in kept)
    """
    with Target(script, tmp_path) as target:
        until = time.monotonic() + SECONDS
        while asked(target.pid, timeout=5) is None:
            assert time.monotonic() < until
        target.end()


def test_the_end_of_the_interpreter_is_not_held_up(tmp_path: Path) -> None:
    """Asked at the very end, a target still ends as it would."""
    for _ in range(5):
        with Target("held = [object() for _ in range(10_000)]\nready()", tmp_path) as target:
            client = connected(target.pid)
            client.sendall(b'{"want": "holders"}\n')
            assert target.end() == ("", "")
            client.close()


def test_listening_twice_is_listening_once(tmp_path: Path) -> None:
    script = """
    from memfit.inside.listener import listen
    listen()
    listen()
    ready()
    """
    with Target(script, tmp_path) as target:
        threads = [
            (task / "comm").read_text().strip()
            for task in Path(f"/proc/{target.pid}/task").iterdir()
        ]
        assert threads.count("memfit") == 1
        target.ask()
        target.end()


def test_running_functions_keep_no_copy_of_their_variables(tmp_path: Path) -> None:
    """What a function lets go of after it was asked is gone, and its `locals()` are untouched."""
    script = """
    import weakref
    class Batch: pass
    def train():
        batch = Batch()
        gone = weakref.ref(batch)
        mine = locals()
        before = dict(mine)
        ready()
        assert mine == before
        batch = before = mine = None
        if sys.version_info < (3, 13):
            # locals() itself keeps the batch here until it is called again.
            locals()
        return gone() is None
    def plain():
        batch = Batch()
        gone = weakref.ref(batch)
        ready()
        batch = None
        return gone() is None
    print(train(), flush=True)
    print(plain())
    """
    with Target(script, tmp_path) as target:
        target.ask()
        assert target.process.stdin is not None
        target.process.stdin.write("\n")
        target.process.stdin.flush()
        assert (target.line(), target.line()) == ("True", "ready")
        target.ask()
        assert target.end()[0].strip() == "True"


@pytest.mark.parametrize("flags", [["-S"], ["-I"], ["-E"], []])
def test_a_python_that_takes_no_customization_runs_all_the_same(flags: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, *flags, "-c", "print('here')"],
        env=launch.environment(),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("here\n", "")


def test_a_customization_of_the_users_is_still_loaded(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.users_own = __file__\n")
    script = """
    import os
    import sitecustomize
    ready()
    print(sys.users_own, sitecustomize.__file__, os.environ["PYTHONPATH"])
    print([folder for folder in sys.path if "inside" in folder])
    """
    users = {**os.environ, "PYTHONPATH": str(tmp_path)}
    with Target(script, tmp_path, environment=users) as target:
        target.ask()
        first, second = target.end()[0].splitlines()
    own = str(tmp_path / "sitecustomize.py")
    assert first.split() == [own, own, f"{launch.SITE}{os.pathsep}{tmp_path}"]
    assert second == "[]"


def test_without_one_there_is_none(tmp_path: Path) -> None:
    script = """
    ready()
    print("sitecustomize" in sys.modules)
    """
    with Target(script, tmp_path) as target:
        target.ask()
        assert target.end()[0].strip() == "False"


def test_a_customization_that_fails_fails_as_it_would(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("raise ValueError('of the user')\n")
    done = subprocess.run(
        [sys.executable, "-c", "print('here')"],
        env=launch.environment({**os.environ, "PYTHONPATH": str(tmp_path)}),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    assert done.stdout == "here\n" and "of the user" in done.stderr


def test_files_of_the_inside_view_that_are_gone_do_no_harm(tmp_path: Path) -> None:
    site = tmp_path / "inside" / "site"
    site.mkdir(parents=True)
    (site / "sitecustomize.py").write_text((launch.SITE / "sitecustomize.py").read_text())
    done = subprocess.run(
        [sys.executable, "-c", "print('here')"],
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("here\n", "")
