"""Faults of memfit's own process, of its terminal and streams, and of whoever looks beside it."""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from memfit.measure.kernel import proc
from tests import faults
from tests.harm.scene import SECONDS, Fault, NotHere, Scene
from tests.measure.live import crafted_answers

Inject = Callable[[Scene], None]
Streams = dict[str, Any]
# memfit with a clock that is set when a file `clock` appears in the folder that TMPDIR names.
_CLOCK = """
import os, sys, time
real, sign = time.time, os.environ["TMPDIR"] + "/../clock"
time.time = lambda: real() + ({seconds} if os.path.exists(sign) else 0.0)
from memfit.cli import main
sys.exit(main())
"""


def clocked(seconds: float) -> tuple[str, ...]:
    return (sys.executable, "-c", _CLOCK.format(seconds=seconds))


def set_clock(scene: Scene) -> None:
    (scene.folder / "clock").touch()
    time.sleep(1)
    scene.goes_on()


def signalled(number: signal.Signals, *who: str) -> Inject:
    def inject(scene: Scene) -> None:
        for name in who:
            os.kill(scene.process.pid if name == "memfit" else scene.keeper, number)
        scene.goes_on()

    return inject


def killed_with_limit(scene: Scene) -> None:
    if not faults.groups_permitted():
        raise NotHere("no memory group is permitted here: such a training ends with memfit")
    scene.process.kill()
    scene.goes_on()


def held(*who: str) -> Inject:
    """Stopped for a time, through the end of what the training does meanwhile."""

    def inject(scene: Scene) -> None:
        pids = [scene.process.pid if name == "memfit" else scene.keeper for name in who]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        until = time.monotonic() + scene.held
        scene.goes_on()
        scene.look()
        time.sleep(max(0.0, until - time.monotonic()))
        for pid in pids:
            os.kill(pid, signal.SIGCONT)

    return inject


def limited(what: int, amount: int | None = None) -> Inject:
    """A limit for memfit alone; what it has now, where no amount is given."""

    def inject(scene: Scene) -> None:
        pid = scene.process.pid
        now = int(proc.text(f"/proc/{pid}/statm").split()[0]) * mmap.PAGESIZE
        hard = resource.prlimit(pid, what)[1]
        resource.prlimit(pid, what, (now if amount is None else amount, hard))
        scene.goes_on()

    return inject


def storm(number: signal.Signals) -> Inject:
    def inject(scene: Scene) -> None:
        for _ in range(500):
            os.kill(scene.process.pid, number)
            time.sleep(0.001)
        scene.goes_on()

    return inject


def _hang_up_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


class Terminal:
    """A terminal of which we hold the other end."""

    master = -1

    @classmethod
    @contextmanager
    def streams(cls) -> Iterator[Streams]:
        cls.master, end = os.openpty()
        with open(end, "wb") as file:
            yield {
                **dict.fromkeys(("stdin", "stdout", "stderr"), file),
                "preexec_fn": _hang_up_ignored,
                "start_new_session": True,
            }
        with contextlib.suppress(OSError):
            os.close(cls.master)

    @classmethod
    def closed(cls, scene: Scene) -> None:
        os.close(cls.master)
        scene.goes_on()

    @classmethod
    def resized(cls, scene: Scene) -> None:
        os.set_blocking(cls.master, False)
        for rows, columns in ((0, 0), (1, 1), (65535, 65535), (3, 10), (24, 80)):
            fcntl.ioctl(cls.master, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))
            os.kill(scene.process.pid, signal.SIGWINCH)
            time.sleep(0.2)
            with contextlib.suppress(BlockingIOError):
                os.read(cls.master, 2**16)
        scene.goes_on()


@contextmanager
def unread() -> Iterator[Streams]:
    with faults.full_pipe() as end:
        yield {"stderr": end}


@contextmanager
def broken() -> Iterator[Streams]:
    with faults.broken_pipe() as end:
        yield {"stderr": end}


@contextmanager
def no_streams() -> Iterator[Streams]:
    yield {"preexec_fn": lambda: os.closerange(0, 3)}


def _beside(scene: Scene, count: int, *words: str, **more: Any) -> list[subprocess.Popen[bytes]]:
    return [scene.memfit(*words, **more) for _ in range(count)]


def explain_ended(number: signal.Signals) -> Inject:
    """Whoever asks is gone, or stands still, in the middle of an answer."""

    def inject(scene: Scene) -> None:
        for moment in (0.3, 0.5, 0.7, 0.9, 1.2):
            (asking,) = _beside(scene, 1, "explain", str(scene.training))
            time.sleep(moment)
            asking.send_signal(number)
            scene.goes_on()
            asking.kill()
            asking.wait()

    return inject


def many_look(scene: Scene) -> None:
    looking = _beside(scene, 4, "explain", str(scene.training), "--no-native")
    looking += _beside(scene, 2, "watch", str(scene.training), "--every", "100ms")
    scene.goes_on()
    for one in looking[:4]:
        one.wait(SECONDS)
    for one in looking:
        one.kill()
        one.wait()


def starved(scene: Scene) -> None:
    """Whoever looks has too little memory, or too few descriptors, to do so."""
    for what, amount in ((resource.RLIMIT_AS, 2**27), (resource.RLIMIT_NOFILE, 5)):
        for words in (("explain", str(scene.training)), ("watch", str(scene.training), "--once")):

            def limit(what: int = what, amount: int = amount) -> None:
                resource.setrlimit(what, (amount, amount))

            scene.memfit(*words, preexec_fn=limit).wait(60)
    scene.goes_on()


def watch_terminal(scene: Scene) -> None:
    """The full-screen view, whose terminal changes and is closed then."""
    master, end = os.openpty()
    with open(end, "wb") as file:
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), file)
        looking = scene.memfit("watch", str(scene.training), start_new_session=True, **streams)
    os.set_blocking(master, False)
    for rows in (24, 1, 60, 0):
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("4H", rows, 80, 0, 0))
        looking.send_signal(signal.SIGWINCH)
        time.sleep(0.7)
        with contextlib.suppress(OSError):
            os.read(master, 2**20)
    os.close(master)
    scene.goes_on()
    looking.send_signal(signal.SIGHUP)  # as the kernel does to whoever it controls
    with contextlib.suppress(subprocess.TimeoutExpired):
        looking.wait(20)
    looking.kill()
    looking.wait()


def watch_unread(scene: Scene) -> None:
    with faults.full_pipe() as full, faults.broken_pipe() as gone:
        words = ("watch", str(scene.training), "--every", "50ms")
        looking = [scene.memfit(*words, stdout=full), scene.memfit(*words, stdout=gone)]
        looking.append(scene.memfit("explain", str(scene.training), stdout=gone))
        scene.goes_on()
        for one in looking:
            one.kill()
            one.wait()


def hostile_clients(scene: Scene) -> None:
    """Nonsense, half a question, and nobody who reads the answer."""
    said = (b"", b"\0" * 100, b"{" * 70_000, b'{"want": "holders"}\n', b"null\n", b"[1]\n", b"x")
    with ExitStack() as stack:
        for number in range(70):
            client = stack.enter_context(socket.socket(socket.AF_UNIX))
            client.settimeout(0.2)
            with contextlib.suppress(OSError):
                client.connect(f"\0memfit.{scene.training}")
                client.sendall(said[number % len(said)])
        scene.goes_on()
        scene.look()


def answering(way: str) -> Inject:
    """Another process answers in the place of the training."""

    def inject(scene: Scene) -> None:
        command = [sys.executable, "-S", crafted_answers.__file__, way, str(scene.training), "7"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
            assert other.stdout is not None and other.stdout.readline() == b"ready\n"
            for _ in range(3):
                scene.look()
            other.kill()
        scene.goes_on()

    return inject


FAULTS = (
    Fault(
        name="memfit killed",
        quick=True,
        kind="torch",
        inject=signalled(signal.SIGKILL, "memfit"),
        code_of="keeper",
    ),
    Fault(name="memfit aborts", inject=signalled(signal.SIGABRT, "memfit"), code_of="keeper"),
    Fault(
        name="memfit killed, with a limit",
        inject=killed_with_limit,
        options=("--limit", "4GiB"),
        code_of="keeper",
    ),
    Fault(
        name="memfit may compute no more (RLIMIT_CPU)",
        inject=limited(resource.RLIMIT_CPU, 0),
        code_of="any",
    ),
    Fault(name="keeper killed", inject=signalled(signal.SIGKILL, "keeper"), code_of="training"),
    Fault(
        name="memfit and keeper killed",
        inject=signalled(signal.SIGKILL, "memfit", "keeper"),
        code_of="training",
    ),
    Fault(name="memfit stopped for a minute", kind="torch", inject=held("memfit")),
    Fault(
        name="memfit stopped for a minute, with a limit",
        inject=held("memfit"),
        options=("--limit", "4GiB"),
    ),
    Fault(name="keeper stopped for a minute", inject=held("keeper")),
    Fault(name="memfit without descriptors", quick=True, inject=limited(resource.RLIMIT_NOFILE, 3)),
    Fault(
        name="memfit without descriptors, with a limit",
        inject=limited(resource.RLIMIT_NOFILE, 3),
        options=("--limit", "4GiB"),
    ),
    Fault(name="memfit without memory", inject=limited(resource.RLIMIT_AS)),
    Fault(
        name="memfit without memory, with a limit",
        inject=limited(resource.RLIMIT_AS),
        options=("--limit", "4GiB"),
    ),
    Fault(name="memfit without threads", inject=limited(resource.RLIMIT_STACK, 0)),
    Fault(name="clock set back in memfit", inject=set_clock, memfit=clocked(-1e6)),
    Fault(name="clock set on in memfit", inject=set_clock, memfit=clocked(1e12)),
    Fault(name="500 signals to memfit", inject=storm(signal.SIGUSR1), own="Signals"),
    Fault(name="500 changes of the window", inject=storm(signal.SIGWINCH)),
    Fault(name="terminal closed", kind="torch", inject=Terminal.closed, streams=Terminal.streams),
    Fault(name="terminal resized", inject=Terminal.resized, streams=Terminal.streams),
    Fault(name="stderr full", streams=unread, options=("--limit", "4GiB")),
    Fault(name="reader of stderr gone", streams=broken, options=("--limit", "4GiB")),
    Fault(name="no streams at all", streams=no_streams),
    Fault(name="explain killed while it asks", inject=explain_ended(signal.SIGKILL)),
    Fault(name="explain stopped while it asks", inject=explain_ended(signal.SIGSTOP)),
    Fault(name="six look at once", inject=many_look, kind="sb3"),
    Fault(name="who looks has no memory or descriptors", inject=starved),
    Fault(name="watch: terminal resized and closed", inject=watch_terminal),
    Fault(name="watch: nobody reads", inject=watch_unread),
    Fault(name="hostile clients", inject=hostile_clients),
    Fault(name="hostile answers", inject=answering("fuzz"), run=False),
    Fault(name="answers without end", inject=answering("endless"), run=False),
)
