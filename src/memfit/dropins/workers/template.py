"""The process that imports what envs need, once, and of which all workers are forks.

Workers share its pages until they write to them. It is a fresh Python, not a fork of the
training, so that nothing of the training (threads, CUDA, large arrays) is in the workers.
When the training ends, however it ends, the template ends and with it its workers.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import gc
import importlib
import mmap
import multiprocessing.process
import multiprocessing.util
import os
import pickle
import random
import select
import signal
import socket
import sys
import threading
import time
import traceback
import warnings
from typing import Any

from memfit.dropins.workers.channel import Channel
from memfit.dropins.workers.holes import filled_holes

LOAD, FORK, DROP, STATUS = range(4)
DONE, FAILED = range(2)
# Asks a worker for its traceback, whatever it does.
TRACE_SIGNAL = signal.SIGRTMIN + 7
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_GRACE_SECONDS = 2.0


def main(fd: int, training: int) -> None:
    """Serve a training until it is gone."""
    gc.disable()
    libc = ctypes.CDLL(None, use_errno=True)
    # What envs started becomes ours when their worker is gone.
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # Ctrl-C is for the training, which then closes us. A handler, since children of envs would
    # inherit that a signal is ignored.
    signal.signal(signal.SIGINT, lambda *_: None)
    channel = Channel(socket.socket(fileno=fd))
    try:
        alive = os.pidfd_open(training)
    except ProcessLookupError:
        return
    if os.getppid() != training:
        return
    template = _Template(channel, libc, (alive,))
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    poll.register(alive, select.POLLIN)
    while True:
        ready = {found for found, _ in poll.poll()}
        if alive in ready:
            break
        try:
            number, kind, payload, fds = channel.recv()
        except EOFError:
            break
        try:
            answer, sent = template.answer(kind, pickle.loads(payload), fds)
        except Exception:  # noqa: BLE001 - told to the training, whatever it is
            channel.send(number, FAILED, pickle.dumps(traceback.format_exc()))
            continue
        finally:
            for received in fds:
                with contextlib.suppress(OSError):
                    os.close(received)
        channel.send(number, DONE, pickle.dumps(answer), sent)
        for opened in sent:
            os.close(opened)
    template.end(_GRACE_SECONDS)
    # Should one of us be killed before this, the kernel ends workers as their parent ends.
    os._exit(0)


class _Template:
    """Holds the factories of each vector env until its workers are made."""

    def __init__(self, channel: Channel, libc: Any, fds: tuple[int, ...]) -> None:
        self._channel = channel
        self._libc = libc
        self._fds = fds
        self._loaded: dict[int, list[Any]] = {}
        self._children: set[int] = set()
        self._fillers: list[Any] = []

    def answer(self, kind: int, asked: Any, fds: list[int]) -> tuple[Any, tuple[int, ...]]:
        if kind == LOAD:
            return self._load(asked, fds), ()
        if kind == FORK:
            pid = self._fork(asked, fds)
            self._children.add(pid)
            return pid, (os.pidfd_open(pid),)
        if kind == DROP:
            # No collection: it would write to pages that workers share.
            self._loaded.pop(asked, None)
            return None, ()
        return self._status(asked), ()

    def _load(self, asked: dict[str, Any], fds: list[int]) -> dict[str, str]:
        """Import, register and unpickle. What fails is said, or raised again by the worker."""
        failed = {}
        for name in asked["preload"]:
            try:
                importlib.import_module(name)
            except Exception:  # noqa: BLE001 - an import may fail in any way
                failed[name] = traceback.format_exc()
        for pickled in asked["registered"]:
            # One that cannot be had here is missing, as the error of the env will say.
            with contextlib.suppress(Exception):
                spec = pickle.loads(pickled)
                sys.modules["gymnasium"].registry.setdefault(spec.id, spec)
        size = os.fstat(fds[0]).st_size
        block = memoryview(mmap.mmap(fds[0], size, prot=mmap.PROT_READ) if size else b"")
        factories: list[Any] = []
        for pickled, places in asked["factories"]:
            arrays = [block[start : start + length] for start, length in places]
            try:
                factories.append(pickle.loads(pickled, buffers=arrays))
            except Exception as error:  # noqa: BLE001 - unpickling runs any code
                factories.append(error)
        self._loaded[asked["id"]] = factories
        for name in asked["derived"]:
            with contextlib.suppress(Exception):
                importlib.import_module(name)
        gc.collect()
        self._fillers += filled_holes()
        gc.freeze()  # so that a collection in a worker does not write to what is shared
        return failed

    def _fork(self, asked: dict[str, Any], fds: list[int]) -> int:
        factories = self._loaded[asked["id"]][asked["first"] : asked["after"]]
        sys.stdout.flush()
        sys.stderr.flush()
        template = os.getpid()
        with warnings.catch_warnings():
            # Python warns of threads, which are those of numpy's OpenBLAS: made for forks.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid:
            return pid
        code = 1
        try:
            self._libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
            if os.getppid() == template:
                # As a process of multiprocessing would: it is told that it begins, and ends.
                multiprocessing.process.BaseProcess._after_fork()  # type: ignore[attr-defined]
                self._child(asked, factories, fds)
                multiprocessing.util._exit_function()  # type: ignore[attr-defined]
                code = 0
        except BaseException:  # noqa: BLE001 - nothing may run on as if it were the template
            traceback.print_exc()
        finally:
            with contextlib.suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)
        raise AssertionError

    def _child(self, asked: dict[str, Any], factories: list[Any], fds: list[int]) -> None:
        self._channel.close()
        for fd in self._fds:
            os.close(fd)
        end, trace = fds
        gc.enable()
        faulthandler.enable(trace)
        faulthandler.register(TRACE_SIGNAL, trace)
        # A fork begins with its parent's random numbers; a process of its own does not.
        random.seed()
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed()
        from memfit.dropins.workers.loop import WorkerLoop

        channel = Channel(socket.socket(fileno=end))
        self._loaded.clear()
        WorkerLoop(channel, asked["first"]).run(factories, asked["style"], asked["mode"])

    def _status(self, pid: int) -> int | None:
        """How a worker ended: a code, or minus a signal; None if it has not."""
        until = time.monotonic() + _GRACE_SECONDS
        while pid in self._children:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                self._children.discard(pid)
                code = os.waitstatus_to_exitcode(status)
                if code:
                    self.end_orphans()
                return code
            if time.monotonic() > until:
                break
            time.sleep(0.005)
        return None

    def end_orphans(self) -> None:
        """End what envs of a worker that ended badly had started: nobody else does."""
        try:
            with open(f"/proc/self/task/{threading.get_native_id()}/children") as file:
                found = [int(word) for word in file.read().split()]
        except OSError:
            return  # not every kernel tells
        for pid in found:
            if pid not in self._children:
                with contextlib.suppress(ProcessLookupError, ChildProcessError):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)

    def end(self, seconds: float) -> None:
        """Let workers that see that the training is gone close their envs, then kill them."""
        until = time.monotonic() + seconds
        while self._children and time.monotonic() < until:
            for pid in list(self._children):
                with contextlib.suppress(ChildProcessError):
                    if os.waitpid(pid, os.WNOHANG)[0]:
                        self._children.discard(pid)
            time.sleep(0.01)
        if self._children:
            for pid in self._children:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            self._children.clear()
            self.end_orphans()
