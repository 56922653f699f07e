"""Which changes would save memory of a live process tree: its rows that match a fix of a check."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial

from memfit.checks._rows import resized, total, without
from memfit.checks.processes import malloc_keeps, workers_import_again
from memfit.checks.storage import float64_observations, next_observations_twice
from memfit.model import (
    Advice,
    Component,
    Kind,
    Ledger,
    ProcessView,
    Repeated,
    Size,
    least_worth,
)
from memfit.model.explanation import Dealt

# The rows of a buffer of stable-baselines3, whatever holds the model.
_NEXT = re.compile(r"(^|\.)replay_buffer\.next_observations\b")
_OBSERVED = re.compile(r"(^|\.)(replay|rollout)_buffer\.(next_)?observations\b")
_GOALS = ("achieved_goal", "desired_goal")  # of hindsight replays, which have no windowed one
_LIBRARY = "python.stable_baselines3"
_IMPORTED = "python."
_NOT_IMPORTED = ("python.free", "python.unread", "python.unreached")
_LEAST_PACKAGE = 2**20  # of one process, else it has not imported much
_STACKED = "repeated frames"
_CONFIGURED = ("MALLOC_ARENA_MAX", "MALLOC_MMAP_THRESHOLD_")


def explain_advice(
    ledger: Ledger,
    processes: Sequence[ProcessView],
    dealt: Mapping[int, Dealt],
    limit: int,
    repeated: Collection[Repeated] = (),
) -> tuple[Advice, ...]:
    """Every change that some row of the tree asks for, the largest saving first.

    What a change saves is the ledger with the row and the one without; what would save less than
    is worth a change is left out.
    """
    every = [
        *_replays(ledger, repeated),
        *_wide(ledger),
        *_workers(ledger, processes, dealt),
        *_malloc(ledger, limit, processes[0].settings),
    ]
    least = least_worth(_held(ledger))
    worth = (one for one in every if one.saves_bytes >= least)
    return tuple(sorted(worth, key=lambda one: -one.saves_bytes))


def _held(ledger: Ledger) -> int:
    return total(ledger, ledger.components)


def _advice(code: str, before: Ledger, after: Ledger, **words: object) -> Advice:
    return Advice(code=code, saves_bytes=_held(before) - _held(after), **words)  # type: ignore[arg-type]


def _buffers(ledger: Ledger, pattern: re.Pattern[str]) -> list[Component]:
    """Rows of buffers that stable-baselines3 made: its objects must be there too."""
    if not any(c.name == _LIBRARY for c in ledger.components):
        return []
    return [c for c in ledger.components if pattern.search(c.name)]


def _replays(ledger: Ledger, repeated: Collection[Repeated]) -> Iterator[Advice]:
    rows = _buffers(ledger, _NEXT)
    if not rows or any(goal in row.name for row in rows for goal in _GOALS):
        return
    stacked = any(r.kind == _STACKED and any(map(_OBSERVED.search, r.holders)) for r in repeated)
    more = ", and each frame of a stack once" if stacked else ""
    yield _advice(
        next_observations_twice.CODE,
        ledger,
        without(ledger, *(row.name for row in rows)),
        change="replay_buffer_class=memfit.dropins.WindowReplayBuffer where the model is made: "
        f"next_observations are not stored{more}",
        safe=True,
        costs="sample() is no slower, add() is",
    )


def _wide(ledger: Ledger) -> Iterator[Advice]:
    rows = [c for c in _buffers(ledger, _OBSERVED) if "float64" in c.evidence.where]
    if rows:
        yield _advice(
            float64_observations.CODE,
            ledger,
            resized(ledger, [row.name for row in rows], lambda size: size // 2),
            change='env = memfit.dropins.NarrowObservation(env, numpy.float32, on_loss="round"), '
            "or dtype=numpy.float32 in the space, and in what step and reset return: the policy "
            "uses them so; before a wrapper that normalises, training changes by rounding",
            to_rounding=True,
        )


def _workers(
    ledger: Ledger, processes: Sequence[ProcessView], dealt: Mapping[int, Dealt]
) -> Iterator[Advice]:
    """Workers that imported the same packages: all but one copy of what these keep."""
    copies: dict[str, list[int]] = {}
    # A forked worker shares what was imported before, and so has little of its own.
    for worker in (p for p in processes[1:] if p.private >= workers_import_again.HEAVY):
        own = dealt.get(worker.pid)
        for holder in own.holders if own is not None else ():
            package = holder.path.startswith(_IMPORTED) and holder.path not in _NOT_IMPORTED
            if package and holder.own and holder.bytes >= _LEAST_PACKAGE:
                copies.setdefault(holder.path, []).append(holder.bytes)
    again = {path: sum(sizes) - max(sizes) for path, sizes in copies.items() if len(sizes) > 1}
    if _LIBRARY not in again:
        return
    after = ledger
    for path, amount in again.items():
        after = resized(after, [f"workers.{path}"], partial(_less, amount=amount))
    yield _advice(
        workers_import_again.CODE,
        ledger,
        after,
        change="vec_env_cls=memfit.dropins.LightVecEnv, in the place of SubprocVecEnv: one process "
        "imports, and all workers share that (at least so much: what C code keeps is not counted)",
        safe=True,
        costs="steps of light envs are no slower",
    )


def _less(size: Size, *, amount: int) -> Size:
    return size - amount


def _malloc(ledger: Ledger, limit: int, variables: Collection[str]) -> Iterator[Advice]:
    """What malloc has freed and keeps, by the rule of its check."""
    if set(_CONFIGURED) & set(variables):
        return
    rows = [c for c in ledger.components if c.kind is Kind.FRAGMENTATION and "malloc" in c.name]
    kept, held = total(ledger, rows), _held(ledger)
    if kept and list(malloc_keeps.found(kept, held, limit)):
        yield _advice(
            malloc_keeps.CODE,
            ledger,
            without(ledger, *(row.name for row in rows)),
            change=f"{malloc_keeps.VARIABLES} before the command (at most so much)",
            safe=True,
            costs="updates may take a fifth more time",
        )
