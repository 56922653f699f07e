"""`memfit run` is the command itself: its output, its signals, its exit code."""

from __future__ import annotations

import os
import pty
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

import memfit
from memfit.measure.kernel import proc
from memfit.measure.live import listener_client
from tests import faults

SECONDS = 60.0
RUN = (sys.executable, "-m", "memfit", "run", "-q", "--no-file", "--")

# Says every signal it gets, and ends at the word.
COUNTS = """
import os, signal, sys
got = []
def note(number, frame):
    got.append(signal.Signals(number).name)
    os.write(1, b"heard\\n")
for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1"):
    signal.signal(getattr(signal, name), note)
print("ready", flush=True)
while True:
    line = sys.stdin.readline()
    if line.strip() == "end":
        break
print(*got, flush=True)
"""


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


def run(command: Sequence[str], **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*RUN, *command],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        input=more.get("input", ""),
    )


def started(command: Sequence[str]) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [*RUN, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


def command_of(process: subprocess.Popen[str]) -> int:
    """The PID of the command, which is below its keeper."""
    (keeper,) = proc.children(process.pid)
    (number,) = proc.children(keeper)
    return number


def gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody has waited for counts as ended."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("code", [0, 1, 2, 3, 77, 255])
def test_the_exit_code_is_the_commands(code: int) -> None:
    done = run(["sh", "-c", f"exit {code}"])
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


@pytest.mark.parametrize(
    ("what", "value"), [(resource.RLIMIT_NOFILE, 3), (resource.RLIMIT_AS, 1)], ids=["files", "room"]
)
def test_memfit_without_files_or_room_passes_the_exit_code_on(what: int, value: int) -> None:
    with faults.run(faults.python(faults.WAITS), "--no-file", "--limit", "400MiB") as process:
        faults.said_pid(process)
        time.sleep(0.6)
        hard = resource.prlimit(process.pid, what)[1]
        resource.prlimit(process.pid, what, (value, hard))
        time.sleep(0.6)
        process.communicate("\n", timeout=SECONDS)
    assert process.returncode == 7


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV])
def test_a_signal_that_ends_the_command_is_told_as_a_shell_does(number: signal.Signals) -> None:
    done = run(["sh", "-c", f"kill -{int(number)} $$"])
    assert done.returncode == 128 + number


def test_input_and_output_are_the_commands() -> None:
    code = "import sys; print(sys.stdin.read().upper()); print('word', file=sys.stderr)"
    done = run(python(code), input="text")
    assert (done.stdout, done.stderr) == ("TEXT\n", "word\n")


def test_options_after_the_dashes_are_the_commands() -> None:
    done = run(["echo", "--help", "--", "-o"])
    assert done.stdout == "--help -- -o\n"


@pytest.mark.parametrize(
    ("command", "word"),
    [(["/no/such/program"], "No such file"), ([str(Path(__file__))], "Permission"), ([], "--")],
)
def test_what_cannot_be_started_is_bad_usage(command: list[str], word: str) -> None:
    done = run(command)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("memfit: ") and word in done.stderr


def test_a_recording_is_a_file_of_that_name_and_a_taken_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.db").write_bytes(b"")
    words = [sys.executable, "-m", "memfit", "run", "-q", "-o", "file:mine.db", "--", "true"]
    for code in (0, 2):
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, check=False)
        assert done.returncode == code, done.stderr
    assert (tmp_path / "mine.db").read_bytes() == b""
    assert (tmp_path / "file:mine.db").stat().st_size


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1"])
def test_signals_are_passed_on_once(name: str) -> None:
    with started(python(COUNTS)) as process:
        child = command_of(process)
        process.send_signal(getattr(signal, name))
        assert process.stdout is not None and process.stdout.readline() == "heard\n"
        time.sleep(0.3)  # for a second one, if there is any
        out, err = process.communicate("end\n", timeout=SECONDS)
        assert (process.returncode, out, err) == (0, f"{name}\n", "")
    assert gone(child)


def test_a_command_that_dies_of_a_passed_signal_gives_its_code() -> None:
    with started(("sh", "-c", "echo ready; exec sleep 60")) as process:
        process.terminate()
        assert process.wait(SECONDS) == 128 + signal.SIGTERM


def test_a_key_of_the_terminal_reaches_the_command_once() -> None:
    pid, terminal = pty.fork()
    if not pid:
        os.execv(sys.executable, [*RUN, *python(COUNTS)])
    with os.fdopen(terminal, "rb+", buffering=0) as keys:
        said = b""
        while b"ready" not in said:
            said += keys.read(1024)
        keys.write(b"\x03")
        while b"heard" not in said:
            said += keys.read(1024)
        time.sleep(0.3)
        keys.write(b"end\n")
        while b"SIG" not in said:
            said += keys.read(1024)
        while not said.endswith(b"\n"):
            said += keys.read(1024)
        _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert said.split(b"end")[-1].split() == [b"SIGINT"]


def test_every_python_below_can_be_asked() -> None:
    code = (
        "import subprocess, sys; held = [bytearray(10**6)]; print('ready', flush=True); "
        "subprocess.run([sys.executable, '-c', 'import sys; below = [bytearray(10**6)]; "
        "sys.stdin.readline()'])"
    )
    with started(("sh", "-c", f'{sys.executable} -c "{code}"; exit 7')) as process:
        top = _listening_below(process.pid, "held")
        below = _listening_below(process.pid, "below")
        assert top != below
        process.communicate("\n", timeout=SECONDS)
        assert process.returncode == 7


def _listening_below(pid: int, holder: str) -> int:
    """The process below that holds something of this name."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        for number in proc.descendants(pid):
            found = listener_client.ask(number, duplicates=False, timeout=SECONDS)
            if found and any(row["holder"] == holder for row in found["python"]):
                return number
        time.sleep(0.05)
    raise AssertionError(f"nobody below {pid} holds {holder}")


def test_the_limit_of_the_run_is_the_one_that_is_explained(tmp_path: Path) -> None:
    code = "import sys; print('ready', flush=True); sys.stdin.readline()"
    options = ("-q", "-o", str(tmp_path / "run.db"), "--limit", "1.5GiB", "--")
    command = [sys.executable, "-m", "memfit", "run", *options, *python(code)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        found = memfit.explain(command_of(process), inside=False)
        process.communicate("\n", timeout=SECONDS)
    assert found.limit.bytes == 3 * 2**29 and "--limit" in found.limit.source


def test_the_same_from_python() -> None:
    from memfit.api.run import run as run_command

    assert run_command([sys.executable, "-c", "raise SystemExit(5)"]).exit_code == 5
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
