"""Threads and malloc: settings that decide how much memory a process keeps for nothing.

    apply_settings(threads=2, arenas=2, mmap_threshold="1MiB")  # before large arrays are made
    print(Settings(threads=2, arenas=2).shell())  # or for the launcher of a program

The numbers of a training are the same; with fewer threads, sums may be in another order.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any

from memfit.errors import Unsupported, UsageError
from memfit.model import Kind, Ledger, Plan
from memfit.units import MIB, parse_bytes

# From malloc.h of the GNU C library.
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -2, -3, -8
_LARGEST_THRESHOLD = 32 * MIB

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_MALLOC = {
    "arenas": (_M_ARENA_MAX, "MALLOC_ARENA_MAX"),
    "mmap_threshold": (_M_MMAP_THRESHOLD, "MALLOC_MMAP_THRESHOLD_"),
    "trim_threshold": (_M_TRIM_THRESHOLD, "MALLOC_TRIM_THRESHOLD_"),
    "top_pad": (_M_TOP_PAD, "MALLOC_TOP_PAD_"),
}

# A plan whose peak is more than so much slack of malloc is worth these settings.
_SLACK_SHARE = 20
_ARENAS, _THRESHOLD = 2, MIB


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Threads of the numeric libraries, and how malloc keeps memory; None is left as it is.

    `arenas`: heaps of malloc, one for each thread and up to eight times the cores unless told.
    `mmap_threshold`: blocks of so many bytes go back to the system as soon as they are free; any
    value also ends malloc's habit of raising it to 32 MiB by itself. `trim_threshold`: so much
    free memory at the end of a heap goes back. `top_pad`: so much is asked for in advance.
    """

    threads: int | None = None
    arenas: int | None = None
    mmap_threshold: int | str | None = None
    trim_threshold: int | str | None = None
    top_pad: int | str | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, str) and field.name not in ("threads", "arenas"):
                value = parse_bytes(value)
                object.__setattr__(self, field.name, value)
            least = 1 if field.name in ("threads", "arenas") else 0
            if value is not None and (type(value) is not int or value < least):
                raise UsageError(
                    f"{field.name}={value!r} cannot be set: give a whole number of {least} or more"
                )
        if self.mmap_threshold is not None and int(self.mmap_threshold) > _LARGEST_THRESHOLD:
            raise UsageError("malloc takes no mmap_threshold above 32MiB: give that or less")

    def environment(self) -> dict[str, str]:
        """The same as variables, for programs that are yet to be started."""
        told = {} if self.threads is None else dict.fromkeys(_THREADS, str(self.threads))
        for name, (_, variable) in _MALLOC.items():
            if getattr(self, name) is not None:
                told[variable] = str(getattr(self, name))
        return told

    def shell(self) -> str:
        """The variables as they are written before a command."""
        return " ".join(f"{name}={value}" for name, value in self.environment().items())


def apply_settings(
    settings: Settings | None = None, *, children: bool = True, **given: Any
) -> Settings:
    """Put settings in force in this process, and by variables in those that it starts.

    Threads that already run keep the heaps that they have: call this before anything else.
    """
    if settings is not None and given:
        raise UsageError("give either Settings or single settings, not both")
    if unknown := sorted(set(given) - {field.name for field in fields(Settings)}):
        raise UsageError(
            f"there is no setting {', '.join(unknown)}: there are "
            f"{', '.join(field.name for field in fields(Settings))}"
        )
    wanted = settings if settings is not None else Settings(**given)
    asked = {name: getattr(wanted, name) for name in _MALLOC if getattr(wanted, name) is not None}
    mallopt = _of_libc("mallopt") if asked else None
    for name, value in asked.items():
        if mallopt is not None and mallopt(_MALLOC[name][0], value) != 1:
            raise UsageError(f"malloc refused {name}={value}: give a smaller value")
    if wanted.threads is not None:
        # torch, if it is loaded; else the variables that it will read.
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(wanted.threads)
        else:
            os.environ.update(dict.fromkeys(_THREADS, str(wanted.threads)))
    if children:
        os.environ.update(wanted.environment())
    return wanted


def settings_for(plan: Plan | Ledger, *, processors: int | None = None) -> Settings:
    """What a plan recommends.

    Where a twentieth of the peak or more is malloc's own slack, it should keep less of it. Where
    workers run beside the main process, threads are no more than the processors left for it.
    """
    ledger = plan.ledger if isinstance(plan, Plan) else plan
    peak = ledger.peak
    slack = sum(
        ledger.bytes_of(c)
        for c in ledger.components
        if c.kind is Kind.FRAGMENTATION and c.alive_in(peak.moment)
    )
    keeps = _SLACK_SHARE * slack >= peak.bytes and slack > 0
    workers = any(c.kind is Kind.WORKER and ledger.bytes_of(c) for c in ledger.components)
    cores = processors if processors is not None else len(os.sched_getaffinity(0))
    return Settings(
        threads=max(1, cores - ledger.knobs.get("n_envs", 0)) if workers else None,
        arenas=_ARENAS if keeps else None,
        mmap_threshold=_THRESHOLD if keeps else None,
    )


def give_back_large_blocks() -> None:
    """Blocks of 1 MiB or more go back to the system when they are free, unless told otherwise."""
    if _MALLOC["mmap_threshold"][1] in os.environ:
        return
    with suppress(Unsupported):  # other libraries give them back by themselves
        apply_settings(mmap_threshold=_THRESHOLD, children=False)


def trim() -> bool:
    """Give free memory of malloc back to the system; whether any was."""
    try:
        return _of_libc("malloc_trim")(0) == 1
    except Unsupported:
        return False


def _of_libc(name: str) -> Callable[..., int]:
    try:
        function: Callable[..., int] = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError, TypeError):
        raise Unsupported(
            f"{name} is of the GNU C library, which this system has not: set threads only"
        ) from None
    return function
