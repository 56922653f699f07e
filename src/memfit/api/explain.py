"""`explain`: where the memory of a live process tree goes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from memfit.analyses import tree_ledger
from memfit.analyses.attribution import Dealt, deal
from memfit.errors import UsageError
from memfit.measure.kernel import limits
from memfit.measure.kernel.mappings import Span
from memfit.measure.live import nvidia, process_tree
from memfit.measure.live.inside_view import look_inside
from memfit.model import Explanation, Inside, Layer, Ledger, Limit, ProcessView, Told

_LEAST_SECONDS = 0.2
_PATIENCE = 120.0
# Shares of a tree's private memory that one process cannot name; large blocks seldom stay so.
_MUCH, _MUCH_IN_BLOCKS = 0.09, 0.03


def explain(
    pid: int,
    *,
    children: bool = True,
    inside: bool = True,
    native: bool | None = None,
    attach: bool = False,
    seconds: float = 0.0,
    limit: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> Explanation:
    """Explain the memory of a process and all below it.

    From outside, without touching them; with `inside`, those that listen are also asked who holds
    it. With `native`, pointers are followed from libraries into the heap, to name what C and C++
    hold; by default where a process told the rest. With `attach`, a Python 3.14 process is made to
    listen. With `seconds`, a second reading so much later tells what grew.
    """
    if pid <= 0:
        raise UsageError(f"{pid} is no process: give a PID, for instance from `pgrep -af python`")
    if seconds and not seconds >= _LEAST_SECONDS:
        raise UsageError(f"{seconds:g} seconds are too few to see growth: give 1 or more")
    started = time.monotonic()
    if attach:
        from memfit.measure.live.listening import attach as make_listen

        process_tree.check_readable(pid)
        make_listen(pid)
    before, first = None, 0.0
    if seconds:
        before = _read(pid, children=children, inside=inside, native=False, duplicates=False)
        if progress is not None:
            progress(f"reading once more in {seconds:g} s")
        first = time.monotonic()
        time.sleep(seconds)
    now = _read(pid, children=children, inside=inside, native=native, duplicates=True)
    between = time.monotonic() - first if before else 0.0
    return Explanation(
        pid=pid,
        processes=tuple(now.processes),
        ledger=now.ledger,
        pss_bytes=sum(p.pss for p in now.processes),
        named_share=tree_ledger.named_share(now.processes),
        limit=_limit(pid, limit),
        available_bytes=limits.available(),
        settings=tree_ledger.settings(now.processes[0], cores=os.cpu_count() or 1),
        device_bytes=nvidia.used_by([p.pid for p in now.processes]),
        inside=_inside(now),
        growth=tree_ledger.grown(before.ledger, now.ledger, between) if before else (),
        growth_seconds=between,
        seconds=time.monotonic() - started,
    )


@dataclass(frozen=True, kw_only=True)
class _Reading:
    """One reading of the tree, and what its processes told."""

    processes: Sequence[ProcessView]
    told: Mapping[int, Told] = field(default_factory=dict)
    dealt: Mapping[int, Dealt] = field(default_factory=dict)

    @property
    def ledger(self) -> Ledger:
        return tree_ledger.tree_ledger(self.processes, self.dealt)


def _read(
    pid: int, *, children: bool, inside: bool, native: bool | None, duplicates: bool
) -> _Reading:
    processes = process_tree.read_tree(pid, children=children)
    told, dealt = {}, {}
    for view in processes if inside else ():
        answer = look_inside(view, duplicates=duplicates, timeout=_PATIENCE)
        if answer is not None:
            told[view.pid] = answer

    def numbers(pid: int) -> list[Span] | None:
        wanted = pid in told if native is None else native
        return _places(told.get(pid)) if wanted else None

    if told or native:  # telling takes seconds: what is dealt out is what there is now
        processes = process_tree.read_tree(pid, children=children, numbers=numbers)
    private = sum(view.private for view in processes)
    for i, view in enumerate(processes):
        if view.pid in told and native is not False:
            reading = _coherent(view, told[view.pid], private)
            processes[i], told[view.pid], dealt[view.pid] = reading
        elif view.pid in told or native:
            dealt[view.pid] = deal(view, told.get(view.pid))
    return _Reading(processes=processes, told=told, dealt=dealt)


def _coherent(view: ProcessView, told: Told, private: int) -> tuple[ProcessView, Told, Dealt]:
    """Of a few readings of a busy process, the one whose parts fit each other best.

    Blocks that come and go while it tells, and while its heap and its mappings are read, have no
    holder in that reading. While there is much of them, it is read again, and then asked again.
    """
    found = [(view, told, deal(view, told))]
    for ask in (False, False, True):
        # Without its heap little would be new.
        if not _much(found[-1][2], private) or not view.native.libraries:
            break
        if ask:
            told = _told_again(view, told)
        try:
            view = process_tree.read_process(view.pid, numbers=_places(told))
        except UsageError:  # it has ended
            break
        found.append((view, told, deal(view, told)))
    view, best, dealt = min(found, key=lambda r: r[2].unnamed / max(1, r[0].private))
    return view, _with_cost(best, told), dealt


def _much(dealt: Dealt, private: int) -> bool:
    blocks = sum(part.private for part in dealt.left if part.layer is Layer.BLOCKS)
    return dealt.unnamed > _MUCH * private or blocks > _MUCH_IN_BLOCKS * private


def _told_again(view: ProcessView, before: Told) -> Told:
    """What the process holds now; what is repeated was found before."""
    told = look_inside(view, duplicates=False, timeout=_PATIENCE)
    if told is None:
        return before
    return replace(
        told,
        repeated=before.repeated,
        notes=before.notes,
        seconds=before.seconds + told.seconds,
        longest_hold_seconds=max(before.longest_hold_seconds, told.longest_hold_seconds),
    )


def _with_cost(told: Told, all_told: Told) -> Told:
    """What was told, with what all telling has cost the process."""
    return replace(
        told, seconds=all_told.seconds, longest_hold_seconds=all_told.longest_hold_seconds
    )


def _places(told: Told | None) -> list[Span]:
    """Where there are numbers and no pointers, as far as they are in memory."""
    blocks = (block for arrays in told.arrays for block in arrays.blocks) if told else ()
    return [(start, start + resident) for start, resident in blocks]


def _inside(reading: _Reading) -> Inside | None:
    if not reading.told:
        return None
    told, dealt = list(reading.told.values()), list(reading.dealt.values())
    holders = sorted((h for d in dealt for h in d.holders if h.bytes), key=lambda h: -h.bytes)
    private = sum(d.private for d in dealt)
    return Inside(
        holders=tuple(holders),
        repeated=tuple(r for t in told for r in t.repeated),
        asked=tuple(reading.told),
        held_share=min(1.0, sum(d.named for d in dealt) / max(1, private)),
        seconds=sum(t.seconds for t in told),
        longest_hold_seconds=max(t.longest_hold_seconds for t in told),
        pools=told[0].pools,
        notes=tuple(note for t in told for note in t.notes),
    )


def _limit(pid: int, limit: int | None) -> Limit:
    if limit is not None:
        return Limit(bytes=limit, source="--limit")
    return limits.memory_limit(pid=pid)
