"""The process between memfit and a disposable child: nothing that the child starts outlives it.

`python -m memfit.measure.children.warden PARENT STATUS FOLDER WAY NETWORK COMMAND...`

With namespaces, the child sees only its own processes and its own view of the files, and the first
process of its namespace, which is below the warden, takes all others with it. Without, the warden
is a subreaper: the kernel hands it what the child leaves behind, whatever session or environment
that has. If memfit itself is gone, the warden ends the child and removes its folder.
"""

from __future__ import annotations

import _socket
import fcntl
import os
import select
import signal
import struct
import sys
from collections.abc import Sequence
from contextlib import suppress

from memfit.measure.children.keeper import ORPHANED, signal_below, tell
from memfit.measure.children.private_files import PrivateFiles, remove
from memfit.measure.children.way import Way
from memfit.measure.kernel import syscalls as kernel

END = signal.SIGTERM  # from memfit: end the child and all that it has started
LAYERS, KEPT = "layers", "in"  # folders of the scratch folder: what is thrown away, what is read
NETWORK = "network"  # the word for a child that may use it
_CANNOT_START = 127
# What root may do to files and processes of its own, but not to the machine (linux/capability.h):
# owners and modes, signals, users, ports, locked memory, priorities, limits.
_ROOT_MAY = {0, 1, 3, 4, 5, 6, 7, 8, 10, 14, 23, 24}
_SET_FLAGS, _UP = 0x8914, 0x41  # of a network interface: up, running


class Warden:
    """Starts a command, tells memfit how that went, and ends all that comes of it."""

    def __init__(self, *, parent: int, status: int, folder: str, way: Way, network: bool) -> None:
        self.parent = parent
        self.status = status
        self.folder = folder
        self.way = way
        self.network = network
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, no exit code would come
        self.mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())

    def run(self, command: Sequence[str]) -> None:
        """Run a command until it ends, or memfit says so, or has ended itself."""
        kernel.prctl(kernel.SUBREAPER, 1)
        kernel.prctl(kernel.SIGNAL_OF_PARENTS_END, ORPHANED)
        if self.way is Way.SHIELD:
            first = self._start(command)
            tell(self.status, "started", first, os.getpid())
        else:
            first = self._start_in_namespaces(command)
        ended = None
        while ended is None and os.getppid() == self.parent:
            if signal.sigwaitinfo({signal.SIGCHLD, END, ORPHANED}).si_signo == END:
                break
            ended = _reap(first)
        while _any_below():
            signal_below(signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(-1, 0)
        if ended is not None and self.way is Way.SHIELD:
            tell(self.status, "ended", ended)
        if os.getppid() != self.parent:
            remove(self.folder)

    def _start(self, command: Sequence[str]) -> int:
        """Start the command below this process, in a session of its own."""
        own = os.getpid()
        if pid := os.fork():
            return pid
        try:
            kernel.prctl(kernel.SIGNAL_OF_PARENTS_END, signal.SIGKILL)
            if os.getppid() == own:
                os.setsid()
                for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them
                    signal.signal(number, signal.SIG_DFL)
                signal.pthread_sigmask(signal.SIG_SETMASK, self.mask)
                os.execvp(command[0], list(command))
        finally:
            os._exit(_CANNOT_START)

    def _start_in_namespaces(self, command: Sequence[str]) -> int:
        privileged = _new_process_namespace()
        ours, theirs = os.pipe()  # closed when the warden has ended
        if pid := os.fork():
            os.close(ours)
            return pid
        try:
            os.close(theirs)
            kernel.prctl(kernel.SIGNAL_OF_PARENTS_END, signal.SIGKILL)
            if not select.select([ours], [], [], 0)[0]:
                self._be_first(command, privileged=privileged)
        except OSError as error:
            tell(self.status, "failed", error.strerror or error)
        finally:
            os._exit(0)

    def _be_first(self, command: Sequence[str], *, privileged: bool) -> None:
        """Be the first process of the namespace: when it ends, the kernel ends all others."""
        below = os.open("/proc/thread-self/children", os.O_RDONLY)  # as memfit sees them
        own = os.readlink("/proc/self")  # noqa: PTH115 - starts quickly
        kernel.unshare(kernel.NEW_MOUNTS | kernel.NEW_IPC)
        if not self.network:
            kernel.unshare(kernel.NEW_NETWORK)
            _loopback_up()
        layers, kept = f"{self.folder}/{LAYERS}", f"{self.folder}/{KEPT}"
        PrivateFiles(layers, kept, privileged=privileged).enter()
        kernel.prctl(kernel.NO_NEW_PRIVILEGES, 1)
        _give_up_the_machine()
        child = self._start(command)
        tell(self.status, "started", os.read(below, 100).split()[0].decode(), own)
        while (ended := _reap(child)) is None:
            signal.sigwaitinfo({signal.SIGCHLD})
        tell(self.status, "ended", ended)


def _new_process_namespace() -> bool:
    """Whatever is started from here on is in a namespace of its own; whether as the real root."""
    with suppress(PermissionError):
        kernel.unshare(kernel.NEW_PROCESSES)
        return True
    user, group = os.geteuid(), os.getegid()
    if user == 0:
        _be_root_of_new_users()
        return False
    kernel.unshare(kernel.NEW_USERS | kernel.NEW_PROCESSES)
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{user} {user} 1")
    _write("/proc/self/gid_map", f"{group} {group} 1")
    return False


def _be_root_of_new_users() -> None:
    """The same for a container's root: all users' files stay its own, which others must grant."""
    own, (ours, theirs) = os.getpid(), os.pipe()
    if not (helper := os.fork()):
        try:
            os.close(theirs)
            os.read(ours, 1)  # until the namespace is there
            for name in ("uid_map", "gid_map"):
                with open(f"/proc/self/{name}") as file:
                    ranges = [line.split() for line in file]
                same = "".join(f"{first} {first} {count}\n" for first, _, count in ranges)
                _write(f"/proc/{own}/{name}", same)
            os._exit(0)
        finally:
            os._exit(1)
    try:
        kernel.unshare(kernel.NEW_USERS | kernel.NEW_PROCESSES)
    finally:
        os.close(theirs)
        os.close(ours)
        _, status = os.waitpid(helper, 0)
    if status:
        raise PermissionError("users cannot be given to a namespace")


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def _give_up_the_machine() -> None:
    """Take from root, for what is started next, all that goes beyond its own files."""
    for capability in range(64):
        if capability not in _ROOT_MAY:
            with suppress(OSError):  # fewer are known to this kernel
                kernel.prctl(kernel.DROP_FROM_BOUNDS, capability)


def _loopback_up() -> None:
    """A network of one machine that has only itself: servers and clients of the child's meet."""
    probe = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
    fcntl.ioctl(probe.fileno(), _SET_FLAGS, struct.pack("16sH14x", b"lo", _UP))
    probe.close()


def _reap(command: int) -> int | None:
    """Take note of all that have ended; the command's exit code, if it is among them."""
    code = None
    with suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            if found[0] == command:
                code = os.waitstatus_to_exitcode(found[1])
    return code


def _any_below() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def main(parent: str, status: str, folder: str, way: str, network: str, *command: str) -> None:
    """Run a command in one of the ways, and tell memfit through a descriptor."""
    os.set_inheritable(int(status), False)
    warden = Warden(
        parent=int(parent),
        status=int(status),
        folder=folder,
        way=Way(way),
        network=network == NETWORK,
    )
    try:
        warden.run(command)
    except OSError as error:
        tell(int(status), "failed", error.strerror or error)


if __name__ == "__main__":
    main(*sys.argv[1:])
    os._exit(0)
