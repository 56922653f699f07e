"""Answers questions about this process's memory, for whoever may look at it, until it ends.

A thread waits at an abstract Unix socket, `\\0memfit.<pid>`, which leaves no file. Until somebody
asks it costs one sleeping thread; what an answer needs is loaded by the first question.
"""

# ruff: noqa: BLE001, SIM105 - whatever goes wrong here is not the target's

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import _socket
import _thread
import atexit
import gc
import os
import select
import sys
import time

TYPE_CHECKING = False  # `typing` would cost every small Python milliseconds
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_BACKLOG = 16
_LONGEST_REQUEST = 65536
_CLIENT_SECONDS = 5.0
_RESTARTS = 3
# Out of the way of programs that count on the numbers of their files; few may be allowed.
_HIGH_NUMBERS = (200, 50, 20)
_ERRORS_OF_THE_PROCESSOR = (_signal.SIGSEGV, _signal.SIGBUS, _signal.SIGFPE, _signal.SIGILL)
# From here on fork() warns where there is a second thread.
_FORK_WARNS = sys.version_info >= (3, 12)
# Here it counts the threads only after everybody was told that the fork is over.
_COUNTS_LATE = sys.version_info[:2] == (3, 13)


class _Listener:
    """The socket and the thread of one process."""

    def __init__(self) -> None:
        self.pid = 0
        self.socket: _socket.socket | None = None
        self.wake = -1
        self.known: list[tuple[int, int] | None] = []
        self.thread = 0  # the kernel's number, 0 where there is none
        self.running = _thread.allocate_lock()
        self.stopping = False
        self.forking = False

    def start(self) -> None:
        """Listen under this process's number, unless something here does so already."""
        self.pid, self.stopping = os.getpid(), False
        self.open()
        self.begin()

    def open(self) -> None:
        """Take a socket, and a file to be woken by."""
        self.socket = _bound(self.pid)
        if self.socket is not None:
            self.wake = _high(os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK))
            self.known = self.files()

    def files(self) -> list[tuple[int, int] | None]:
        """Which files the numbers stand for: a target may close them and open others."""
        number = self.socket.fileno() if self.socket is not None else -1
        return [_identity(number), _identity(self.wake)]

    def begin(self) -> None:
        """Start the thread where it is not running."""
        self.stopping = False
        if self.socket is not None and self.running.acquire(blocking=False):
            try:
                _thread.start_new_thread(self.run, ())
            except RuntimeError:  # too many threads, or the interpreter is ending
                self.running.release()

    def run(self) -> None:
        """Serve until told to stop; never let anything out."""
        try:
            self.thread = _thread.get_native_id()
            _out_of_the_way(self.thread)
            for _ in range(_RESTARTS):
                self.serve()
                if self.stopping:
                    break
                self.start_over()
        except BaseException:
            pass
        finally:
            self.running.release()

    def start_over(self) -> None:
        """The target has closed all its files, as daemons do: take new ones.

        The old numbers may stand for other files now, so they are left alone.
        """
        if self.socket is not None:
            self.socket.detach()
        self.open()

    def serve(self) -> None:
        """One client after another, as long as the files are those that were opened."""
        server = self.socket
        if server is None:
            self.stopping = True
            return
        waiting = select.poll()
        waiting.register(server.fileno(), select.POLLIN)
        waiting.register(self.wake, select.POLLIN)
        while True:
            waiting.poll()
            if self.stopping or self.files() != self.known:
                return
            try:
                number, _ = server._accept()  # type: ignore[attr-defined]
            except BlockingIOError:  # the client has gone again
                continue
            except OSError:
                return
            client = _socket.socket(fileno=_high(number))
            try:
                self.answer(client)
            except (OSError, ValueError, MemoryError, RecursionError):
                pass
            finally:
                client.close()

    def answer(self, client: _socket.socket) -> None:
        """Read one request and write its answer."""
        if not _may_ask(client):
            return
        client.settimeout(_CLIENT_SECONDS)
        request = _line(client)
        there = select.poll()
        there.register(client.fileno(), 0)  # tells only that the other side has gone
        text = _reply(request, lambda: self.stopping or bool(there.poll(0)))
        _send(client, text)

    def stop(self, seconds: float) -> None:
        """End the thread, also in the middle of an answer; wait for it so long."""
        self.stopping = True
        if self.wake < 0:
            return
        os.eventfd_write(self.wake, 1)
        if not self.running.acquire(timeout=seconds):
            return
        self.running.release()
        try:
            os.eventfd_read(self.wake)
        except BlockingIOError:
            pass

    def forget(self) -> None:
        """In a child of fork: its parent's socket and thread are not its own."""
        for number in (self.socket.detach() if self.socket is not None else -1, self.wake):
            if number >= 0:
                os.close(number)
        self.__init__()  # type: ignore[misc]


_listener = _Listener()
_registered = False


def listen() -> None:
    """Let `memfit explain` see inside this process: who holds its arrays, tensors and objects.

    Call it once, anywhere. A second call does nothing; children by fork() listen too.
    """
    global _registered  # noqa: PLW0603 - hooks of a process cannot be taken back
    try:
        if _listener.pid != os.getpid():
            _listener.start()
        if not _registered:
            _registered = True
            os.register_at_fork(
                before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child
            )
            atexit.register(_at_exit)
    except (OSError, RuntimeError, AttributeError):
        pass


def _bound(pid: int) -> _socket.socket | None:
    """A socket that listens under this number, or None where there is one already."""
    server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC, 0)
    try:
        server.bind(b"\0memfit.%d" % pid)
        server.listen(_BACKLOG)
        server = _socket.socket(fileno=_high(server.detach()))
        server.setblocking(False)
    except OSError:
        server.close()
        return None
    return server


def _identity(number: int) -> tuple[int, int] | None:
    """Which file a number stands for."""
    try:
        found = os.fstat(number)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _high(number: int) -> int:
    """The same file under the highest of some numbers that this process may have."""
    try:
        import fcntl
    except ImportError:
        return number
    for least in _HIGH_NUMBERS:
        try:
            moved = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, least)
        except OSError:
            continue
        os.close(number)
        return moved
    return number


def _out_of_the_way(thread: int) -> None:
    """Leave the target's signals to its other threads, and be known by name."""
    mine = set(range(1, _signal.NSIG)) - set(_ERRORS_OF_THE_PROCESSOR)
    _signal.pthread_sigmask(_signal.SIG_BLOCK, mine & set(_signal.valid_signals()))
    try:
        with open(f"/proc/self/task/{thread}/comm", "w") as file:
            file.write("memfit")
    except OSError:
        pass


def _may_ask(client: _socket.socket) -> bool:
    """Whether the other side is the same user, or root."""
    size = 12
    found = client.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, size)
    user = int.from_bytes(found[4:8], sys.byteorder, signed=True)
    return user in (0, os.geteuid())


def _line(client: _socket.socket) -> bytes:
    found = b""
    while b"\n" not in found:
        part = client.recv(4096)
        if not part or len(found) > _LONGEST_REQUEST:
            raise ValueError
        found += part
    return found.partition(b"\n")[0]


def _reply(request: bytes, stop: Callable[[], bool]) -> bytes:
    """The answer to a request, or what was wrong, as one JSON document."""
    import json

    try:
        from .answering import Interrupted, answer  # noqa: TID252 - see the package

        wanted: Any = json.loads(request)
        if not isinstance(wanted, dict):
            raise TypeError("a request is a JSON object")
        try:
            found = answer(wanted, stop=stop)
        except Interrupted:
            found = {"schema": 1, "error": "interrupted", "again": True}
    except Exception as error:
        found = {"schema": 1, "error": f"{type(error).__name__}: {error}"}
    return json.dumps(found).encode()


def _send(client: _socket.socket, text: bytes) -> None:
    # A client that has gone must not end the target, whatever SIGPIPE does there.
    rest = memoryview(text)
    while rest:
        rest = rest[client.send(rest, _socket.MSG_NOSIGNAL) :]


def _alone() -> bool:
    """Whether there is no other thread than the one that calls and the listener's."""
    return len(os.listdir("/proc/self/task")) <= 2


def _before_fork() -> None:
    try:
        _listener.forking = _FORK_WARNS and _listener.socket is not None and _alone()
        if _listener.forking:
            _listener.stop(1.0)
            _wait_until_gone(_listener.thread)
    except BaseException:
        pass


def _wait_until_gone(thread: int) -> None:
    for _ in range(200):
        if not os.access(f"/proc/self/task/{thread}", os.F_OK):
            return
        time.sleep(0.0001)


def _after_fork() -> None:
    try:
        if _listener.forking:
            _listener.forking = False
            if _COUNTS_LATE:
                gc.callbacks.append(_begin_later)
            else:
                _listener.begin()
    except BaseException:
        pass


def _begin_later(phase: str, info: dict[str, int]) -> None:
    """Start the thread again when Python next collects: long after the fork has returned."""
    try:
        gc.callbacks.remove(_begin_later)
        _listener.begin()
    except BaseException:
        pass


def _in_child() -> None:
    try:
        while _begin_later in gc.callbacks:
            gc.callbacks.remove(_begin_later)
        _listener.forget()
        _listener.start()
    except BaseException:
        pass


def _at_exit() -> None:
    """Let go of what an answer in progress holds, so that the interpreter ends as it would."""
    try:
        if _listener.pid == os.getpid() and _listener.thread:
            _listener.stop(0.1)
    except BaseException:
        pass
