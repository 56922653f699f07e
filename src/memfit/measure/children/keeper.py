"""The process between memfit and a command, below which everything stays that the command starts.

memfit runs this file as a program, which needs the standard library alone. It is a subreaper: the
kernel hands it every process of the command whose parent has ended, whatever session or environment
that has. It ends with the command and its exit code; asked to stay, once all have ended. Where
memfit itself has ended, a command with a limit goes on if the kernel's memory group holds it, and
is ended whole if nothing does; one without goes on.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress

STAY = signal.SIGUSR1  # from memfit: end when all have ended
ORPHANED = signal.SIGUSR2  # from the kernel: memfit has ended
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_NEVER_STARTED = 127
_MOST_LEFT = 1000  # processes that are told of: all of it must fit into a pipe


class Keeper:
    """Starts a command, takes in what it leaves behind, and waits."""

    def __init__(self, *, parent: int, group: str, limited: bool) -> None:
        self.parent = parent
        self.limited = limited
        self.group = group if group and _move(os.getpid(), group) else ""
        self.command = 0
        self.code: int | None = None
        self._stays = self._orphaned = False

    def start(self, command: Sequence[str], mask: Sequence[int]) -> None:
        """Start the command with these signals blocked; OSError where that cannot be done."""
        try:
            self.command = os.posix_spawnp(
                command[0],
                tuple(command),
                os.environ,
                setsigmask=mask,
                setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),  # Python ignores them
            )
        finally:
            if self.group:  # the command is in it, and what it starts
                _move(os.getpid(), os.path.dirname(self.group))  # noqa: PTH120  # starts quickly

    def wait(self) -> int:
        """Wait for the command; its exit code, 128 + n where signal n has ended it."""
        while True:
            if not self._orphaned and os.getppid() != self.parent:
                self._left_alone()
            if self._orphaned and self.limited and not self.group:
                signal_below(signal.SIGKILL)
            any_left = self._reap()
            if self.code is not None and not (self._stays and any_left):
                break
            info = signal.sigwaitinfo({signal.SIGCHLD, STAY, ORPHANED})
            self._stays |= info.si_signo == STAY and info.si_pid == self.parent
        if self._orphaned and self.group:
            with suppress(OSError):
                os.rmdir(self.group)  # noqa: PTH106
        return self.code

    def _left_alone(self) -> None:
        self._orphaned = True
        self._stays = self.limited
        if self.group:  # it may have been held still
            signal_below(signal.SIGCONT)

    def _reap(self) -> bool:
        """Take note of all that have ended; whether others are left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if not pid:
                return True
            if pid == self.command:
                code = os.waitstatus_to_exitcode(status)
                self.code = code if code >= 0 else 128 - code


def signal_below(number: signal.Signals) -> None:
    """Send a signal to all below this process."""
    for pid in list(_below(os.getpid())):
        with suppress(OSError):
            os.kill(pid, number)


def _below(pid: int) -> Iterator[int]:
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                found = [int(word) for word in file.read().split()]
            for child in found:
                yield child
                yield from _below(child)


def _move(pid: int, group: str) -> bool:
    try:
        with open(f"{group}/cgroup.procs", "w") as file:
            file.write(str(pid))
    except OSError:
        return False
    return True


def main(parent: str, status: str, mask: str, group: str, limited: str, *command: str) -> int:
    """Tell memfit, through a descriptor, how the command has started, and what it leaves behind."""
    os.set_inheritable(int(status), False)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    prctl(_PR_SET_PDEATHSIG, ORPHANED)
    if os.getppid() != int(parent):
        return _NEVER_STARTED
    keeper = Keeper(parent=int(parent), group=group, limited=limited == "limited")
    try:
        keeper.start(command, [int(number) for number in mask.split(",") if number])
    except OSError as error:
        tell(int(status), "failed", error.errno or 0)
        return _NEVER_STARTED
    tell(int(status), "started", keeper.command, int(bool(keeper.group)))
    _let_go(int(status))
    code = keeper.wait()
    tell(int(status), "left", *list(_below(os.getpid()))[:_MOST_LEFT])
    return code


def _let_go(status: int) -> None:
    """Have no file open that is the command's: a lock or a pipe ends when that closes it."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)
    with suppress(OSError):
        for number in map(int, os.listdir("/proc/self/fd")):
            if number > 2 and number != status:
                with suppress(OSError):  # by which they were listed
                    os.close(number)


def tell(status: int, *words: object) -> None:
    """Tell memfit something, in one line."""
    with suppress(OSError):  # memfit has ended
        os.write(status, " ".join(map(str, words)).encode() + b"\n")


if __name__ == "__main__":
    os._exit(main(*sys.argv[1:]))
