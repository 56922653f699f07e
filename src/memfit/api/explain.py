"""`explain`: where the memory of a live process tree goes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from memfit.analyses import tree_ledger
from memfit.analyses.attribution import deal
from memfit.analyses.explain_advice import explain_advice
from memfit.errors import UsageError
from memfit.libraries import all_roles
from memfit.measure.kernel import limits, proc
from memfit.measure.live import nvidia, process_tree
from memfit.measure.live.holder_reading import TO_ANSWER, WAIT, HolderReading, read_holders
from memfit.measure.record.run_above import run_above
from memfit.model import Explanation, Grown, Inside, Limit, Repeated

_LEAST_SECONDS = 0.2
_TWO_ALIKE = 3  # times as long, at most, so that two readings tell the same
_LEAST_WITHIN, _TO_WRITE, _LONGEST_START = 1.5, 0.3, 1.0  # seconds, a share, seconds of work
_RUN_LIMIT = "--limit of its memfit run"


def explain(
    pid: int,
    *,
    children: bool = True,
    inside: bool = True,
    native: bool | None = None,
    attach: bool = False,
    wait: float = WAIT,
    within: float = TO_ANSWER,
    seconds: float = 0.0,
    limit: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> Explanation:
    """Explain the memory of a process and all below it.

    From outside, without touching them; with `inside`, their objects are read too, which say who
    holds it, and those that listen are asked for up to `wait` seconds. The answer is there `within`
    so many, with what was found by then, unless more is asked for. With `native`, pointers are
    followed from libraries into the heap, to name what C and C++ hold; by default where there is
    time. With `attach`, a Python 3.14 process is made to listen. With `seconds`, a second reading
    so much later tells what grew.
    """
    if pid <= 0:
        raise UsageError(f"{pid} is no process: give a PID, for instance from `pgrep -af python`")
    if seconds and not seconds >= _LEAST_SECONDS:
        raise UsageError(f"{seconds:g} seconds are too few to see growth: give 1 or more")
    started = time.monotonic()
    if attach:
        from memfit.measure.live.listener_client import attach as make_listen

        process_tree.check_readable(pid)
        make_listen(pid)
    read = partial(
        read_holders,
        pid,
        deal,
        children=children,
        inside=inside,
        wait=wait,
        within=_TWO_ALIKE * TO_ANSWER if seconds else within,
        roles=all_roles(),
    )
    before, first = None, 0.0
    if seconds:
        native = bool(native)  # both readings are of one kind, and the first tells no C and C++
        before = read(native=native, duplicates=False)
        if progress is not None:
            progress(f"reading once more in {seconds:g} s")
        first = time.monotonic()
        time.sleep(seconds)
    now = read(native=native, duplicates=True)
    ledger = tree_ledger.tree_ledger(now.processes, now.dealt)
    between = time.monotonic() - first if before else 0.0
    own_limit = Limit.given(limit) or _run_limit(pid) or limits.memory_limit(pid=pid)
    told = _inside(now)
    return Explanation(
        pid=pid,
        processes=tuple(now.processes),
        ledger=ledger,
        pss_bytes=sum(p.pss for p in now.processes),
        named_share=tree_ledger.named_share(now.processes),
        limit=own_limit,
        available_bytes=limits.available(),
        settings=tree_ledger.settings(now.processes[0], cores=os.cpu_count() or 1),
        device_bytes=nvidia.used_by([p.pid for p in now.processes]),
        inside=told,
        growth=_grown(before, now, between) if before else (),
        growth_seconds=between,
        advice=explain_advice(
            ledger, now.processes, now.dealt, own_limit.bytes, told.repeated if told else ()
        ),
        notes=now.notes,
        seconds=time.monotonic() - started,
    )


def left_of_start() -> float:
    """Seconds in which a command shall have its answer, after what Python's start has taken.

    To write it takes as long again as a part of that. A process that has worked for longer than a
    start takes is no command, but calls it as a function.
    """
    if time.process_time() > _LONGEST_START:
        return TO_ANSWER
    started = int(proc.stat(os.getpid())[19]) / os.sysconf("SC_CLK_TCK")
    age = max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - started)
    return max(_LEAST_WITHIN, TO_ANSWER - (1 + _TO_WRITE) * age)


def _grown(before: HolderReading, now: HolderReading, seconds: float) -> tuple[Grown, ...]:
    """What changed between two readings: by holder only where the same processes told both times.

    Else what one reading has under its holders and the other under its layers would have grown.
    """
    first, second = (tree_ledger.layers(reading.processes) for reading in (before, now))
    if set(before.told) == set(now.told):
        first, second = (tree_ledger.tree_ledger(r.processes, r.dealt) for r in (before, now))
    return tree_ledger.grown(first, second, seconds)


def _together(found: Sequence[Repeated]) -> list[Repeated]:
    """What is said of the same holders more than once, in one row, and the most first."""
    rows: dict[tuple[str, tuple[str, ...]], list[Repeated]] = {}
    for one in found:
        rows.setdefault((one.kind, one.holders), []).append(one)
    together = [
        replace(
            same[0],
            saves_bytes=sum(r.saves_bytes for r in same),
            message=f"{len(same)} times: {same[0].message}" if len(same) > 1 else same[0].message,
        )
        for same in rows.values()
    ]
    return sorted(together, key=lambda row: -row.saves_bytes)


def _run_limit(pid: int) -> Limit | None:
    """The limit of the `memfit run` that a process is under, which ends it before any other."""
    run = run_above(pid)
    return None if run is None or run.limit is None else replace(run.limit, source=_RUN_LIMIT)


def _inside(reading: HolderReading) -> Inside | None:
    if not reading.told:
        return None
    told, dealt = list(reading.told.values()), list(reading.dealt.values())
    holders = sorted((h for d in dealt for h in d.holders if h.bytes), key=lambda h: -h.bytes)
    private = sum(d.private for d in dealt)
    return Inside(
        holders=tuple(holders),
        repeated=tuple(_together([r for t in told for r in t.repeated])),
        asked=tuple(pid for pid, t in reading.told.items() if not t.outside),
        outside=tuple(pid for pid, t in reading.told.items() if t.outside),
        held_share=min(1.0, sum(d.named for d in dealt) / max(1, private)),
        seconds=sum(t.seconds for t in told),
        longest_hold_seconds=max(t.longest_hold_seconds for t in told),
        readings=tuple(reading.readings),
        pools=told[0].pools,
        notes=tuple(note for t in told for note in t.notes),
    )
