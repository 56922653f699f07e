"""Reads a live tree and who holds it: asked, again where answers do not fit, or from outside.

Telling takes seconds and a training goes on meanwhile, so that a reading is judged by what it
leaves without a holder. Whoever asks brings the way in which memory is dealt out to holders.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf

from memfit.errors import UsageError
from memfit.measure.kernel.process_memory import Span
from memfit.measure.live import process_tree
from memfit.measure.live.inside_view import look_inside
from memfit.measure.live.listener_client import NO_ROLES, NoAnswer
from memfit.measure.live.outside_view import look_outside
from memfit.model import HeldReadings, Layer, ProcessView, Told
from memfit.model.explanation import Dealt

Look = Callable[..., Told | None]
Deal = Callable[[ProcessView, Told | None], Dealt]

WAIT = 4.0  # seconds that a process may take to tell, if nobody says otherwise
TO_ANSWER = 5.0  # seconds after which there shall be an answer
_WALKING = 3.0  # seconds of these in which objects are read from outside
_LEAST_SECONDS = 0.2
_LAST = 0.5  # seconds of these for what comes after reading
_NOT_FOLLOWED = (
    "what C and C++ hold in process {} was not looked for, since that takes longer: "
    "--native does it"
)
_FOLLOWED_A_SECOND = 150 * 2**20  # bytes of heap and objects that are followed in a second
_CLOCKS = time.monotonic, time.process_time
_ASKED_AT_ONCE = 16
_HINT = " (--wait gives it more time)"
# Shares of a tree's private memory that one process cannot name; large blocks seldom stay so.
_MUCH, _MUCH_IN_BLOCKS = 0.09, 0.03
_AGAIN = (False, False, True)  # how often a process is read again, and whether it is asked again


@dataclass(frozen=True, kw_only=True)
class HolderReading:
    """One reading of a tree, what its processes told, and how often each was read for it.

    `notes` say which of those that listen did not tell, and why.
    """

    processes: Sequence[ProcessView]
    told: Mapping[int, Told] = field(default_factory=dict)
    dealt: Mapping[int, Dealt] = field(default_factory=dict)
    readings: Sequence[HeldReadings] = ()
    notes: tuple[str, ...] = ()


def read_holders(
    pid: int,
    deal: Deal,
    *,
    children: bool,
    inside: bool,
    native: bool | None,
    duplicates: bool,
    wait: float = WAIT,
    roles: Mapping[str, str] = NO_ROLES,
) -> HolderReading:
    """Read a process and all below it; with `inside`, also who holds their memory.

    Those that listen are asked, and may take `wait` seconds; what the others hold, and those that
    do not answer by then, is read from outside. `roles` says what classes of RL libraries are in a
    training. With `native`, pointers are followed through the heap; by default where there is time.
    """
    started, _ = since = time.monotonic(), time.process_time()
    processes = process_tree.read_tree(pid, children=children)
    look = partial(look_inside, timeout=wait, roles=roles)
    told: dict[int, Told] = {}
    notes: list[str] = []
    if inside:
        walk = partial(look_outside, roles=roles)
        ask = partial(look, duplicates=duplicates)
        told = _told(processes, ask, walk, started, wait, notes)

    def numbers(pid: int) -> list[Span] | None:
        wanted = pid in told if native is None else native
        if native is None and wanted and told[pid].outside:
            wanted = _in_time(processes, pid, since)
            if not wanted:
                notes.append(_NOT_FOLLOWED.format(pid))
        return _places(told.get(pid)) if wanted else None

    if told or native:  # telling takes seconds: what is dealt out is what there is now
        until = started + max(TO_ANSWER, wait) - _LAST if native is None else inf
        processes = process_tree.read_tree(pid, children=children, numbers=numbers, until=until)
        notes += [_NOT_FOLLOWED.format(v.pid) for v in processes if v.native.cut]
    private = sum(view.private for view in processes)
    dealt: dict[int, Dealt] = {}
    readings = []
    for i, view in enumerate(processes):
        if view.pid not in told and not native:
            continue
        listens = view.pid in told and not told[view.pid].outside
        again = look if listens and native is not False else None
        found = _attempts(view, told.get(view.pid), deal, private, again)
        kept = min(range(len(found)), key=lambda n: found[n].unnamed_share)
        best = found[kept]
        processes[i], dealt[view.pid] = best.view, best.dealt
        last = found[-1].told  # with what all telling has cost the process
        if best.told is not None and last is not None:
            longest = last.longest_hold_seconds
            told[view.pid] = replace(best.told, seconds=last.seconds, longest_hold_seconds=longest)
        readings.append(
            HeldReadings(
                pid=view.pid,
                named=tuple(a.dealt.named for a in found),
                private=tuple(a.dealt.private for a in found),
                kept=kept,
            )
        )
    return HolderReading(
        processes=processes, told=told, dealt=dealt, readings=readings, notes=tuple(notes)
    )


def _told(
    processes: Sequence[ProcessView],
    ask: Callable[[ProcessView], Told | None],
    walk: Callable[..., Told],
    started: float,
    wait: float,
    notes: list[str],
) -> dict[int, Told]:
    """Who holds the memory of each process: the largest first, as far as there is time."""
    told: dict[int, Told] = {}
    largest = sorted(processes, key=lambda view: -view.private)
    with ThreadPoolExecutor(max_workers=_ASKED_AT_ONCE) as pool:
        asked = {view.pid: pool.submit(ask, view) for view in largest}
        unread = []
        for view in largest:
            left = started + _WALKING - time.monotonic()
            if _has_told(asked[view.pid]):
                continue
            if left < _LEAST_SECONDS and told:
                unread.append(view.pid)
                continue
            try:
                told[view.pid] = walk(view, seconds=max(_LEAST_SECONDS, left))
            except NoAnswer as why:
                if view is processes[0]:
                    notes.append(f"who holds what in process {view.pid} is not known: {why}")
        if unread:
            notes.append(f"the objects of {len(unread)} smaller processes were not read: no time")
        for view in largest:
            try:
                answer = asked[view.pid].result()
            except NoAnswer as why:
                more = "; what its objects hold was read from outside" if view.pid in told else ""
                text = f"process {view.pid} was asked who holds its memory, in vain: {why}{more}"
                notes.append(text + _HINT * (wait <= WAIT))
                continue
            if answer is not None:
                told[view.pid] = answer
    return {view.pid: told[view.pid] for view in processes if view.pid in told}


def _has_told(asked: Future[Told | None]) -> bool:
    return asked.done() and asked.exception() is None and asked.result() is not None


def _in_time(processes: Sequence[ProcessView], pid: int, since: tuple[float, float]) -> bool:
    """Whether the heap of a process can be followed before there shall be an answer.

    `since` says when reading began, and what this process had had of the processor by then.
    """
    heap = sum(
        part.resident
        for view in processes
        if view.pid == pid
        for part in view.parts
        if part.layer in (Layer.HEAP, Layer.ARENAS, Layer.OBJECTS)
    )
    passed, used = (now() - then for now, then in zip(_CLOCKS, since, strict=True))
    share = min(1.0, used / max(passed, 0.001))  # of a processor, on a machine that is busy
    return heap / (_FOLLOWED_A_SECOND * share) < TO_ANSWER - passed


@dataclass(frozen=True, kw_only=True)
class _Attempt:
    """One process read once."""

    view: ProcessView
    told: Told | None
    dealt: Dealt

    @property
    def unnamed_share(self) -> float:
        return self.dealt.unnamed / max(1, self.view.private)


def _attempts(
    view: ProcessView, told: Told | None, deal: Deal, private: int, look: Look | None
) -> list[_Attempt]:
    """Readings of a process, until its parts fit each other or it was read often enough.

    Blocks that come and go while it tells, and while its heap and its mappings are read, have no
    holder in that reading. While there is much of them, it is read again, and then asked again.
    """
    found = [_Attempt(view=view, told=told, dealt=deal(view, told))]
    for ask in _AGAIN if look is not None else ():
        # Without its heap little would be new.
        if told is None or not _much(found[-1].dealt, private) or not view.native.libraries:
            break
        if ask and look is not None:
            told = _told_again(view, told, look)
        try:
            view = process_tree.read_process(view.pid, numbers=_places(told))
        except UsageError:  # it has ended
            break
        found.append(_Attempt(view=view, told=told, dealt=deal(view, told)))
    return found


def _much(dealt: Dealt, private: int) -> bool:
    blocks = sum(part.private for part in dealt.left if part.layer is Layer.BLOCKS)
    return dealt.unnamed > _MUCH * private or blocks > _MUCH_IN_BLOCKS * private


def _told_again(view: ProcessView, before: Told, look: Look) -> Told:
    """What the process holds now; what is repeated was found before."""
    try:
        told = look(view, duplicates=False)
    except NoAnswer:
        told = None
    if told is None:
        return before
    return replace(
        told,
        repeated=before.repeated,
        notes=before.notes,
        seconds=before.seconds + told.seconds,
        longest_hold_seconds=max(before.longest_hold_seconds, told.longest_hold_seconds),
    )


def _places(told: Told | None) -> list[Span]:
    """Where there are numbers and no pointers, as far as they are in memory."""
    blocks = (block for arrays in told.arrays for block in arrays.blocks) if told else ()
    return [(start, start + resident) for start, resident in blocks]
