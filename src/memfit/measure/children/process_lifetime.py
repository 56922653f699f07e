"""How processes are started, and ended: with all below them, and with the one that started them."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any

from memfit.errors import UsageError
from memfit.measure.kernel import proc

_PR_SET_PDEATHSIG = 1
_OVER = "over"
# Lets all processes go on that it has read of, the last first, if there is no more to read.
_RELEASES = f"""
while read -r word; do
    [ "$word" = {_OVER} ] && exit
    held="$word $held"
done
kill -CONT $held
"""
_STOPPING_SECONDS = 0.05  # a process that computes takes a moment to stop
# Looked up here: a fork of a program with threads should look nothing up.
_PRCTL = getattr(ctypes.CDLL(None), "prctl", None)


def start(command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start a command; UsageError where that cannot be done."""
    try:
        return subprocess.Popen(command, **options)
    except OSError as error:
        raise cannot_start(command[0], error.strerror) from None
    except ValueError as error:  # a zero byte in a word
        raise UsageError(f"cannot start this command: {error}. Check its words") from None


def cannot_start(program: str, reason: str | None) -> UsageError:
    """The error for a command that the kernel does not start."""
    return UsageError(f"cannot start {program}: {reason}. Check the command after --")


@contextlib.contextmanager
def own_session(command: Sequence[str], output: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """A command without standard input, which is ended with all of its group."""
    streams = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": subprocess.STDOUT}
    process = start(command, **streams, start_new_session=True)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()


def end_tree(pid: int) -> None:
    """End a process and all below it."""
    end_all(proc.Tree(main=pid).members)


def end_all(members: Callable[[], Sequence[int]]) -> None:
    """End these processes; stopped first, so that none starts another meanwhile."""
    signal_all(hold_still(members), signal.SIGKILL)


def hold_still(members: Callable[[], Sequence[int]]) -> list[int]:
    """Stop these processes, with those that they were just starting; who was stopped."""
    held: list[int] = []
    while more := [pid for pid in members() if pid not in held]:
        signal_all(more, signal.SIGSTOP)
        held += more
    return held


@contextlib.contextmanager
def held_still(tree: proc.Tree) -> Iterator[list[int]]:
    """Stop a tree for a moment so that none of it notices: all of its processes.

    Who waits for a child is told when that is stopped. So parents stop before their children, and
    go on after them. Who was stopped before, by its user or by another process, stays so. They go
    on also where this process is killed meanwhile, and the keeper with it.
    """
    members: list[int] = []
    held: list[int] = []
    with _released_without_us() as note:
        try:
            _hold(tree, members, held, note)
            yield members
        finally:
            signal_all(held[::-1], signal.SIGCONT)


@contextlib.contextmanager
def _released_without_us() -> Iterator[Callable[[Sequence[int]], None]]:
    """A process beside this one lets those go on that it is told of, if this one is killed.

    Nobody does where no process more is permitted.
    """
    try:
        process = subprocess.Popen(
            ["/bin/sh", "-c", _RELEASES],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={},
        )
    except OSError:
        yield lambda pids: None
        return

    def tell(words: Sequence[object]) -> None:
        assert process.stdin is not None
        with contextlib.suppress(OSError):  # it was killed itself
            process.stdin.write("".join(f"{word}\n" for word in words).encode())
            process.stdin.flush()

    try:
        yield tell
    finally:
        tell([_OVER])
        process.communicate()


def _hold(
    tree: proc.Tree,
    members: list[int],
    held: list[int],
    note: Callable[[Sequence[int]], None],
) -> None:
    until = time.monotonic() + _STOPPING_SECONDS
    while more := [pid for pid in tree.members() if pid not in members]:
        # Those whose parents are held: these start no others any more.
        found = {pid: proc.state_and_parent(pid) for pid in more}
        level = [pid for pid in more if found[pid][1] not in found] or more
        stopped = [pid for pid in level if found[pid][0] not in "Tt"]
        members += level
        held += stopped
        note(stopped)
        signal_all(stopped, signal.SIGSTOP)
        parents = [pid for pid in stopped if proc.children(pid)]
        while not all(map(_is_still, parents)) and time.monotonic() < until:
            time.sleep(0.0005)


def _is_still(pid: int) -> bool:
    """Whether no thread of a process runs, or can before it stops."""
    return not any(proc.state_and_parent(thread)[0] in "RS" for thread in proc.thread_ids(pid))


def signal_all(pids: Sequence[int], number: signal.Signals) -> None:
    """Send a signal to those of these processes that are there."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def end_with_parent(parent: int) -> None:
    """Have the kernel end this process when the one that started it ends, however it does."""
    if _PRCTL is not None:
        _PRCTL(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it has ended before this could be said
        os._exit(1)
