"""What memfit says waits for nobody, and is not written over what the command shows."""

from __future__ import annotations

import os
import pty
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from memfit.measure.record.recording_reader import load
from tests.faults import SECONDS, WAITS, full_pipe, go_on, python, run, said_pid

CLEAR = b"\x1b[2K"


def on_terminal(command: Sequence[str], until: bytes, answer: bytes = b"") -> tuple[bytes, int]:
    """All that a terminal gets from `memfit run`; `answer` is typed a while after `until`."""
    pid, terminal = pty.fork()
    if not pid:
        words = [sys.executable, "-m", "memfit", "run", "--no-file", "--", *command]
        os.execv(sys.executable, words)
    seen = b""
    with os.fdopen(terminal, "rb+", buffering=0) as screen, suppress(OSError):
        while until not in seen:
            seen += screen.read(4096)
        if answer:
            time.sleep(1)
            screen.write(answer)
        while more := screen.read(4096):
            seen += more
    _, status = os.waitpid(pid, 0)
    return seen, os.waitstatus_to_exitcode(status)


def test_a_prompt_stays_as_it_is() -> None:
    code = "import sys; name = input('(Pdb) '); sys.exit(name != 'c')"
    seen, status = on_terminal(python(code), b"(Pdb) ", b"c\n")
    before, _, after = seen.partition(b"(Pdb) ")
    assert status == 0 and before == b""
    assert after.startswith(b"c\r\n") and CLEAR not in seen
    assert b"for want of memory" not in after
    assert b"exit code 0" in after  # what memfit says comes after all of it


def test_a_progress_bar_is_not_written_over() -> None:
    code = (
        "import sys, time\n"
        "for i in range(5): sys.stderr.write(f'\\rstep {i}'); time.sleep(0.2)\n"
        "print(flush=True)"
    )
    seen, status = on_terminal(python(code), b"step 0")
    assert status == 0
    steps = b"".join(b"\rstep %d" % i for i in range(5))
    assert seen.startswith(steps + b"\r\n") and CLEAR not in seen


def test_a_terminal_that_the_command_has_left_shows_a_live_line() -> None:
    silent = f"exec {sys.executable} -c 'import time; time.sleep(1.5)' <&- >/dev/null 2>&1"
    seen, status = on_terminal(["sh", "-c", silent], b"memfit: ")
    assert status == 0
    assert seen.count(CLEAR) >= 2 and b"one process" in seen


def test_a_reader_that_does_not_read_costs_a_second_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    with full_pipe() as end, run(python(WAITS), "-o", str(path), stderr=end) as process:
        said_pid(process)
        go_on(process)
        began = time.monotonic()
        assert process.wait(SECONDS) == 7
        assert time.monotonic() - began < 5
    assert load(path).exit_code == 7


def test_a_closed_standard_error_is_nobodys(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    command = f'exec {sys.executable} -m memfit run -o {path} -- sh -c "exit 7" 2>&-'
    status = os.system(command)
    assert os.waitstatus_to_exitcode(status) == 7
    assert load(path).exit_code == 7


def test_a_shells_prompt_is_not_wiped_by_a_job_in_the_background() -> None:
    """Neither by the line nor by the words at the end, which are whole lines."""
    pid, terminal = pty.fork()
    if not pid:
        silent = f"exec {sys.executable} -c 'import time; time.sleep(2)' <&- >/dev/null 2>&1"
        words = f'{sys.executable} -m memfit run --no-file -- sh -c "{silent}"'
        os.execvp("bash", ["bash", "-c", f"set -m; {words} & wait $!; echo code=$?"])
    with os.fdopen(terminal, "rb", buffering=0) as screen:
        seen = b""
        with suppress(OSError):
            while b"code=" not in seen and (more := screen.read(4096)):
                seen += more
        os.waitpid(pid, 0)
    assert b"code=0" in seen and b"exit code 0" in seen
    assert CLEAR not in seen and b"one process" not in seen


def test_words_in_the_background_do_not_stop_the_job() -> None:
    """A terminal that stops who writes to it from the background (stty tostop)."""
    pid, terminal = pty.fork()
    if not pid:
        words = f"{sys.executable} -m memfit run --no-file -- sh -c 'exit 7'"
        os.execvp("bash", ["bash", "-c", f"set -m; stty tostop; {words} & wait $!; echo code=$?"])
    with os.fdopen(terminal, "rb", buffering=0) as screen:
        seen = b""
        with suppress(OSError):
            while b"code=" not in seen and (more := screen.read(4096)):
                seen += more
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert b"code=7" in seen
