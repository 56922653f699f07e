"""What a training does beside training that may be hard on whoever looks at it."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

THREADS, MAPPINGS, SMALL = 2000, 60_000, 256 * 2**20


class Own:
    """Nothing but training; the parts below do more."""

    writes = True  # the training may say how far it is

    def __init__(self, folder: Path, tracker: Any) -> None:
        self.folder = folder
        self.tracker = tracker
        self.cycles = 0
        self.begin()

    def begin(self) -> None:
        """Before the first repetition."""

    def each(self) -> None:
        """After each one."""

    def end(self) -> str:
        """Undo it; what is wrong now that would not be without memfit."""
        return ""

    def last(self) -> None:
        """After all was said."""


class Threads(Own):
    def begin(self) -> None:
        self.over = threading.Event()
        threading.stack_size(64 * 1024)
        self.threads = [threading.Thread(target=self.over.wait) for _ in range(THREADS)]
        for thread in self.threads:
            thread.start()

    def end(self) -> str:
        self.over.set()
        for thread in self.threads:
            thread.join()
        return ""


class Mappings(Own):
    def begin(self) -> None:
        self.held = [mmap.mmap(-1, mmap.PAGESIZE) for _ in range(MAPPINGS)]


class Descriptors(Own):
    """All that it may have; few, so that this is quick."""

    def begin(self) -> None:
        self.held: list[int] = []
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 256), hard))

    def each(self) -> None:
        with contextlib.suppress(OSError):
            while self.cycles > 3:
                self.held.append(os.dup(0))

    def end(self) -> str:
        for number in self.held:
            os.close(number)
        return ""


class Forks(Own):
    def each(self) -> None:
        for _ in range(20):
            if (pid := os.fork()) == 0:
                os._exit(0)
            os.waitpid(pid, 0)


class Execs(Own):
    def each(self) -> None:
        for _ in range(10):
            subprocess.run(["/bin/true"], check=True)


class Zombies(Own):
    def begin(self) -> None:
        self.pids = []
        for _ in range(300):
            if (pid := os.fork()) == 0:
                os._exit(0)
            self.pids.append(pid)

    def end(self) -> str:
        for pid in self.pids:
            os.waitpid(pid, 0)
        return ""


class Daemons(Own):
    """Processes that leave: two forks, a session of their own, nothing open; they end with it."""

    def begin(self) -> None:
        main = os.getpid()
        for _ in range(5):
            if (pid := os.fork()) == 0:
                os.setsid()
                if os.fork() == 0:
                    os.chdir("/")
                    os.closerange(0, 1024)
                    while os.path.exists(f"/proc/{main}"):  # noqa: PTH110
                        time.sleep(0.05)
                os._exit(0)
            os.waitpid(pid, 0)


class Becomes(Own):
    """Another program under the same number: the same training, from its beginning."""

    def each(self) -> None:
        if self.cycles == 3 and "MEMFIT_TEST_BECAME" not in os.environ:
            os.environ["MEMFIT_TEST_BECAME"] = "1"
            os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


class Closes(Own):
    """Closes all files that it does not know, as daemons do, and opens its own."""

    text = b"of the training\n" * 10_000

    def each(self) -> None:
        if self.cycles == 3:
            time.sleep(0.5)
            os.closerange(3, 1024)
            self.files = [self.folder / f"own{number}" for number in range(40)]
            self.open = [open(file, "wb+", buffering=0) for file in self.files]  # noqa: SIM115
            for file in self.open:
                file.write(self.text)

    def end(self) -> str:
        changed = sum(file.read_bytes() != self.text for file in self.files)
        return f"{changed} of its files are changed" if changed else ""


class Moves(Own):
    """To a folder that is removed then."""

    def begin(self) -> None:
        place = tempfile.mkdtemp()
        os.chdir(place)
        os.rmdir(place)  # noqa: PTH106


class ClockBack(Own):
    hours = -100.0

    def each(self) -> None:
        if self.cycles == 3:
            real, by = time.time, 3600 * self.hours
            time.time = lambda: real() + by


class ClockOn(ClockBack):
    hours = 8e7


class LittleRoom(Own):
    """May reserve little more than it has."""

    def begin(self) -> None:
        words = Path("/proc/self/statm").read_text().split()
        most = int(words[0]) * mmap.PAGESIZE + SMALL
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))

    def end(self) -> str:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
        return ""


class ShortFiles(Own):
    """May write no byte more, and is killed if it does (it writes none itself)."""

    def each(self) -> None:
        if self.cycles == 3:
            self.writes = False
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))

    def end(self) -> str:
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        return ""


class TellsNonsense(Own):
    """Tells what nobody can keep."""

    def each(self) -> None:
        if self.tracker is None:
            return
        import numpy as np

        for name in (np.array([1, 2]), "x" * 2**20, "\ud800\x1b[2J\0", None, Raises(), 10**30):
            self.tracker.phase(name)
        self.tracker._next_step = 0.0
        for number in (10**30, -1, "many", float("nan"), Raises()):
            self.tracker.step(number)
            self.tracker._next_step = 0.0
        for holders in ({"x": 2**70}, {Raises(): 1}, {"y": "many"}, lambda: 1 / 0, None, 5):
            self.tracker.holders(holders)


class Raises:
    """Likes nothing."""

    def __str__(self) -> str:
        raise RuntimeError("not now")

    __repr__ = __str__

    def __int__(self) -> int:
        raise RuntimeError("not now")


class ForksTracked(Own):
    """A fork goes on telling, and ends as Pythons do."""

    def each(self) -> None:
        if self.tracker is None or self.cycles > 6:
            return
        if (pid := os.fork()) == 0:
            self.tracker.phase("of the fork")
            self.tracker.step(5)
            self.tracker.memory_bytes()
            sys.exit(0)
        if os.waitpid(pid, 0)[1]:
            self.failed = True

    failed = False

    def end(self) -> str:
        return "a fork has failed" if self.failed else ""


class Hidden(Own):
    """May not be looked at (by those who may not look at everything), under a hostile name."""

    def begin(self) -> None:
        prctl = ctypes.CDLL(None).prctl
        prctl(4, 0)  # PR_SET_DUMPABLE
        prctl(15, b"a) R 1 (\x1b[2J\n")  # PR_SET_NAME


class Other(Own):
    """Becomes another user, who may neither read nor write the recording."""

    def each(self) -> None:
        if self.cycles == 3 and os.getuid() == 0:
            self.folder.chmod(0o777)
            self.folder.parent.chmod(0o711)
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)


class Crashes(Own):
    """Ends by a signal of its own."""

    def last(self) -> None:
        os.kill(os.getpid(), signal.SIGSEGV)


class Signals(Own):
    """Counts a signal."""

    def begin(self) -> None:
        self.got = 0
        signal.signal(signal.SIGUSR1, self._count)

    def _count(self, *_: object) -> None:
        self.got += 1

    def end(self) -> str:
        return "" if self.got else "no signal has come"


class Deaf(Own):
    """Its main thread is in C for long and lets no other Python run; its steps come late."""

    def each(self) -> None:
        if 3 <= self.cycles <= 5:
            ctypes.PyDLL(None).usleep(900_000)  # with the lock of the interpreter held


class Hostile(Own):
    """Holds objects that end the process when any code of them is called."""

    def begin(self) -> None:
        from tests.harm.hostile import made

        self.held = made()

    def each(self) -> None:
        if self.tracker is not None:
            self.tracker.holders({"net": 5})


OWN: dict[str, Callable[[Path, Any], Own]] = {
    kind.__name__: kind
    for kind in (
        *(Threads, Mappings, Descriptors, Forks, Execs, Zombies, Daemons, Becomes, Closes, Moves),
        *(ClockBack, ClockOn, LittleRoom, ShortFiles, TellsNonsense, ForksTracked, Hidden, Other),
        *(Crashes, Signals, Deaf, Hostile),
    )
}
