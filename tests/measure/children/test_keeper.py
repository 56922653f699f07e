"""What a command starts stays below its keeper, and outlives memfit as far as it should."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memfit.measure.kernel import proc
from tests.faults import (
    GROWS,
    SECONDS,
    WAITS,
    alive,
    go_on,
    groups,
    groups_permitted,
    python,
    run,
    said_pid,
    state,
    until,
)

DIRECT, SHELL = (), ("sh", "-c", '"$@"; true', "sh")


@pytest.mark.parametrize("between", [DIRECT, SHELL], ids=["direct", "shell"])
def test_without_a_limit_a_training_outlives_memfit(
    between: tuple[str, ...], tmp_path: Path
) -> None:
    code = WAITS.replace("raise SystemExit(7)", f"open({str(tmp_path / 'done')!r}, 'w').close()")
    with run([*between, *python(code)], "--no-file", "-q") as process:
        training = said_pid(process)
        above = proc.descendants(process.pid)
        process.kill()
        process.wait(SECONDS)
        time.sleep(0.3)
        assert alive(training)
        go_on(process)
        assert until((tmp_path / "done").exists)
        assert until(lambda: not any(map(alive, above)))


@pytest.mark.skipif(not groups_permitted(), reason="the kernel's memory group is not permitted")
@pytest.mark.parametrize("between", [DIRECT, SHELL], ids=["direct", "shell"])
def test_with_a_limit_the_kernel_holds_a_training_whose_memfit_was_killed(
    between: tuple[str, ...],
) -> None:
    with run([*between, *python(GROWS)], "--no-file", "-q", "--limit", "100MiB") as process:
        training = said_pid(process)
        os.kill(training, signal.SIGSTOP)  # as memfit may just have done
        process.kill()
        process.wait(SECONDS)
        assert until(lambda: state(training) in ("S", "R"))
        (group,) = groups(process.pid)
        go_on(process)
        assert until(lambda: not alive(training))
        assert until(lambda: not group.exists())  # nothing is left of it


# Starts a command with a limit where no memory group is permitted, and says all PIDs.
WITHOUT_GROUP = """
import sys, time
from pathlib import Path
from memfit.measure.children import launch
with launch._started(sys.argv[1:], set(), Path("none.db"), None, limited=True) as kept:
    time.sleep(0.5)
    print(*kept.tree.members(), flush=True)
    time.sleep(100)
"""
# A family in which a grandchild has left its parent and its session.
FAMILY = """
import os, time
if os.fork() == 0:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(100)
        os._exit(0)
    time.sleep(100)
time.sleep(100)
"""


def test_with_a_limit_that_nobody_else_holds_a_training_ends_whole_with_memfit() -> None:
    words = [sys.executable, "-c", WITHOUT_GROUP, *SHELL, *python(FAMILY)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        members = [int(word) for word in process.stdout.readline().split()]
        assert sum(map(alive, members)) == 4
        process.kill()
    assert until(lambda: not any(map(alive, members)))


def test_what_a_command_leaves_behind_is_buried() -> None:
    """Processes whose parent has ended are waited for, however many they are."""
    code = """
import os, sys
for _ in range(200):
    if os.fork() == 0:
        if os.fork() == 0:
            os._exit(0)
        os._exit(0)
    os.wait()
print(os.getpid(), flush=True)
sys.stdin.readline()
"""
    with run(python(code), "--no-file", "-q") as process:
        said_pid(process)
        (keeper,) = proc.children(process.pid)
        assert until(lambda: len(proc.children(keeper)) == 1)
        go_on(process)
        assert process.wait(SECONDS) == 0


def test_a_command_outlives_its_keeper_too() -> None:
    with run(python(WAITS), "--no-file") as process:
        training = said_pid(process)
        (keeper,) = proc.children(process.pid)
        os.kill(keeper, signal.SIGKILL)
        time.sleep(0.6)
        assert alive(training) and process.poll() is None
        go_on(process)
        assert process.wait(SECONDS) == 128 + signal.SIGKILL  # its own was for its parent alone
        assert not alive(training)


@pytest.mark.parametrize("options", [(), ("--limit", "1GiB")], ids=["free", "limited"])
def test_a_command_gets_the_signals_and_streams_that_memfit_got(options: tuple[str, ...]) -> None:
    code = """
import os, signal
blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
ignored = [s.name for s in signal.valid_signals()
           if isinstance(s, signal.Signals) and signal.getsignal(s) is signal.SIG_IGN]
print(sorted(blocked), sorted(ignored), sorted(os.listdir("/proc/self/fd")))
"""
    words = [sys.executable, "-I", "-c", code]  # -I: nothing of memfit is loaded
    with open(os.devnull) as low, open(os.devnull) as file:
        far = fcntl.fcntl(file, fcntl.F_DUPFD, 200)
        for given in ((), (low.fileno(), far)):
            plain = subprocess.run(
                words, capture_output=True, text=True, check=True, pass_fds=given
            )
            with run(words, "--no-file", "-q", *options, pass_fds=given) as process:
                out, _ = process.communicate(timeout=SECONDS)
            assert out == plain.stdout
        os.close(far)


@pytest.mark.parametrize("options", [(), ("--limit", "1GiB")], ids=["free", "limited"])
def test_a_command_alone_has_what_it_inherits(options: tuple[str, ...]) -> None:
    """A pipe of a shell's can be read, and ends when the command closes it, not when it ends."""
    reader, writer = os.pipe()
    back, answer = os.pipe()
    code = f"""
import os, sys
os.write({answer}, os.read({reader}, 100).upper())
os.close({reader}); os.close({answer})
sys.stdin.readline()
"""
    with (
        open(back, "rb") as heard,
        run(python(code), "--no-file", *options, pass_fds=(reader, answer)) as process,
    ):
        os.close(reader)
        os.close(answer)
        os.write(writer, b"token")
        assert heard.read() == b"TOKEN"  # to its end, while the command waits
        with pytest.raises(BrokenPipeError):
            os.write(writer, b"token")
        os.close(writer)
        go_on(process)
        assert process.wait(SECONDS) == 0
