"""A worker as the training knows it, and the errors that say what went wrong in one."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import sys
import time
from dataclasses import dataclass
from typing import Any

from gymnasium import spaces

from memfit.dropins.workers.channel import Channel, readable
from memfit.dropins.workers.template import TRACE_SIGNAL
from memfit.errors import MemfitError, TargetFailed, Unsupported, UsageError

_TRACE_SECONDS = 1.0
_ALONE = "Try the env alone, in this process: env = make_env(); env.reset(); env.step(action)"
_READ_ONLY = (
    "Arrays of 64 KiB and more that factories hold are shared by all workers, so they are "
    "read-only. Copy what is to be written: array.copy()"
)


@dataclass(kw_only=True)
class Worker:
    """One process with the envs from `first` to before `after`."""

    first: int
    after: int
    channel: Channel
    pid: int
    pidfd: int
    trace: int
    pending: bool = False

    def alive(self) -> bool:
        return not readable(self.pidfd)

    @property
    def name(self) -> str:
        last = self.after - 1
        envs = f"env {self.first}" if last == self.first else f"envs {self.first} to {last}"
        return f"the worker of {envs} (process {self.pid})"

    def traceback(self) -> str:
        """What it wrote when it crashed, or when it was asked."""
        size = os.fstat(self.trace).st_size
        return os.pread(self.trace, size, 0).decode(errors="replace")


def as_raised(
    at: int, name: str, message: str, text: str, whole: bytes | None, *, doing: str, fatal: bool
) -> tuple[Exception, Exception | None]:
    """The error for what an env raised, and its cause.

    What only was asked of an env is raised as in the env; else the workers were ended.
    """
    error: Any = None
    with contextlib.suppress(Exception):
        error = pickle.loads(whole) if whole else None
    if isinstance(error, MemfitError):
        return type(error)(f"env {at}: {error}", output=text), None
    if not fatal and isinstance(error, Exception):
        error.add_note(f"Raised by env {at} in a worker:\n{text}")
        return error, None
    hint = _READ_ONLY if "read-only" in message else _ALONE
    found = TargetFailed(
        f"env {at} raised {name} while {doing}: {message}\n\nIn its worker:\n{text}\n{hint}",
        output=text,
    )
    return found, error if isinstance(error, Exception) else None


def died(worker: Worker, code: int | None, doing: str) -> TargetFailed:
    """The error for a worker that is gone."""
    text = worker.traceback()
    how, hint = "ended", _ALONE
    if code is not None and code >= 0:
        how = f"ended with exit code {code}"
    elif code is not None:
        how = f"was killed by {signal.Signals(-code).name}"
    if code == -signal.SIGKILL:
        hint = "Look whether memory was too small (dmesg), and make fewer or smaller envs"
    shown = f"\n\nIn its worker:\n{text}\n" if text else ". "
    return TargetFailed(f"{worker.name} {how} while {doing}{shown}{hint}", output=text)


def hung(worker: Worker, seconds: float, doing: str) -> TargetFailed:
    """The error for a worker that gives no answer, with what it does."""
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(worker.pidfd, TRACE_SIGNAL)
    until = time.monotonic() + _TRACE_SECONDS
    while time.monotonic() < until and not worker.traceback():
        time.sleep(0.01)
    time.sleep(0.05)  # it is written line by line
    text = worker.traceback()
    return TargetFailed(
        f"{worker.name} gave no answer for {seconds:g} seconds while {doing}\n\n"
        f"In its worker:\n{text}\nFix what waits there, or raise timeout= if it is only slow",
        output=text,
    )


def check_arguments(env_fns: Any, workers: Any, preload: Any, timeout: Any) -> None:
    """Wrong arguments of a vector env."""
    if sys.platform != "linux":
        raise Unsupported("LightVecEnv needs Linux. Use SubprocVecEnv or AsyncVectorEnv here")
    if not env_fns or not all(callable(build) for build in env_fns):
        raise UsageError(
            "LightVecEnv takes a list of functions that each make an env. "
            'Give [lambda: gymnasium.make("CartPole-v1") for _ in range(4)]'
        )
    if workers is not None and (not isinstance(workers, int) or workers < 1):
        raise UsageError(f"workers={workers!r} is no number of processes. Give 1 or more")
    if isinstance(preload, str) or not all(isinstance(name, str) for name in preload):
        raise UsageError(f"preload={preload!r} is no list of modules. Give ['package.module']")
    if timeout is not None and not timeout > 0:
        raise UsageError(f"timeout={timeout!r} is no time. Give seconds, or None to wait forever")


def equivalent(a: spaces.Space[Any], b: spaces.Space[Any]) -> bool:
    """Whether observations or actions of two envs can lie in the same array."""
    if a == b:
        return True
    try:
        from gymnasium.spaces.utils import is_space_dtype_shape_equiv

        same = is_space_dtype_shape_equiv(a, b)
    except Exception:  # noqa: BLE001 - a space of the user's own, of which only == is known
        return False
    return same and not isinstance(a, (spaces.Discrete, spaces.MultiDiscrete))
