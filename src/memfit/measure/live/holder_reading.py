"""Reads a live tree and who holds it: asked, again where answers do not fit, or from outside.

Telling takes seconds and a training goes on meanwhile, so that a reading is judged by what it
leaves without a holder. Whoever asks brings the way in which memory is dealt out to holders.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf

from memfit.errors import UsageError
from memfit.measure.kernel.process_memory import Span
from memfit.measure.live import process_tree
from memfit.measure.live.inside_view import look_inside
from memfit.measure.live.listener_client import NO_ROLES, NoAnswer
from memfit.measure.live.outside_view import OutsideLooks
from memfit.model import HeldReadings, Layer, ProcessView, Told
from memfit.model.explanation import Dealt

Look = Callable[..., Told | None]
Deal = Callable[[ProcessView, Told | None], Dealt]

WAIT = 4.0  # seconds that a process may take to tell, if nobody says otherwise
TO_ANSWER = 5.0  # seconds after which there shall be an answer
_LEAST_SECONDS = 0.1
_LAST = 0.2  # seconds of the processor, of what there is, for what comes after reading
_OF_THE_LARGEST = 0.5  # of the time for variables, at least
_TO_SEE = 0.15  # seconds of the processor, in which the variables of most programs are seen
_LEAST_WALKING = 0.6  # of the time that is left after the first reading
_NOT_FOLLOWED = (
    "what C and C++ hold in process {} was not looked for, since that takes longer: "
    "--native does it"
)
_FOLLOWED_A_SECOND = 150 * 2**20  # bytes of heap and objects that are followed in a second
_ASKED_AT_ONCE = 16
_MOST_SHOWN = 8  # processes that a note names
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


class _Time:
    """The time until there shall be an answer, on a machine that may let this work but little."""

    def __init__(self, seconds: float) -> None:
        self._began = time.monotonic(), time.process_time()
        self._waited = 0.0
        self.until = self._began[0] + seconds

    def worked(self) -> float:
        """Seconds of the processor that reading has taken so far."""
        return time.process_time() - self._began[1]

    def left(self, work: float = _LAST) -> float:
        """Seconds that are left before the work that remains, of so many of the processor."""
        return self.until - time.monotonic() - self.takes(work)

    def takes(self, work: float) -> float:
        """How long so many seconds of the processor take, as it went so far."""
        passed = time.monotonic() - self._began[0] - self._waited
        share = self.worked() / max(passed, 0.001)
        return work / min(1.0, share or 1.0)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """While others work for this, it needs no processor."""
        since = time.monotonic()
        try:
            yield
        finally:
            self._waited += time.monotonic() - since


def read_holders(
    pid: int,
    deal: Deal,
    *,
    children: bool,
    inside: bool,
    native: bool | None,
    duplicates: bool,
    wait: float = WAIT,
    within: float = TO_ANSWER,
    roles: Mapping[str, str] = NO_ROLES,
) -> HolderReading:
    """Read a process and all below it; with `inside`, also who holds their memory.

    Those that listen are asked, and may take `wait` seconds; what the others hold, and those that
    do not answer by then, is read from outside. `roles` says what classes of RL libraries are in a
    training. With `native`, pointers are followed through the heap; by default where there is time.
    All is done `within` so many seconds, but for longer waits and pointers that are wanted.
    """
    clock = _Time(within + max(0.0, wait - WAIT))
    processes = process_tree.read_tree(pid, children=children)
    to_read = clock.worked()
    if wait > WAIT:  # so long was given to telling: reading may have taken it on a busy machine
        clock.until = max(clock.until, time.monotonic() + wait)
    told: dict[int, Told] = {}
    notes: list[str] = []
    if inside:
        told = _told(processes, clock, to_read, wait, duplicates, roles, notes)

    def numbers(pid: int) -> list[Span] | None:
        wanted = pid in told if native is None else native
        if native is None and wanted:
            wanted = _in_time(processes, pid, clock)
            if not wanted:
                notes.append(_NOT_FOLLOWED.format(pid))
        return _places(told.get(pid)) if wanted else None

    # Telling takes seconds: what is dealt out is what there is now, where there is time to read it.
    if native or (told and clock.left(to_read) > 0):
        until = clock.until if native is None else inf
        processes = process_tree.read_tree(pid, children=children, numbers=numbers, until=until)
        notes += [_NOT_FOLLOWED.format(v.pid) for v in processes if v.native.cut]
    private = sum(view.private for view in processes)
    dealt: dict[int, Dealt] = {}
    readings = []
    for i, view in enumerate(processes):
        if view.pid not in told and not native:
            continue
        listens = view.pid in told and not told[view.pid].outside
        again = partial(look_inside, roles=roles) if listens and native is not False else None
        found = _attempts(view, told.get(view.pid), deal, private, again, clock, wait)
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
    clock: _Time,
    to_read: float,
    wait: float,
    duplicates: bool,
    roles: Mapping[str, str],
    notes: list[str],
) -> dict[int, Told]:
    """Who holds the memory of each process, as far as there is time: the largest first.

    The variables of all come before what libraries hold, and another reading is left time for.
    """
    told: dict[int, Told] = {}
    largest = sorted(processes, key=lambda view: -view.private)
    after = _LAST + to_read
    if clock.left(after) < _LEAST_WALKING * clock.left(0.0):
        after = _LAST  # there will be no other reading
    wait = max(_LEAST_SECONDS, min(wait, clock.left(after)))
    ask = partial(look_inside, duplicates=duplicates, timeout=wait, roles=roles)
    with (
        ThreadPoolExecutor(max_workers=_ASKED_AT_ONCE) as pool,
        OutsideLooks(roles, len(largest)) as looks,
    ):
        asked = {view.pid: pool.submit(ask, view) for view in largest}
        seen: list[ProcessView] = []
        unread = []
        for i, view in enumerate(largest):
            left = clock.left(after)
            if _has_told(asked[view.pid]):
                continue
            if left < _LEAST_SECONDS and seen:
                unread.append(view.pid)
                continue
            own = view.private / max(1, sum(other.private for other in largest[i:]))
            try:
                part = max(left * max(_OF_THE_LARGEST, own), clock.takes(_TO_SEE))
                seconds = max(_LEAST_SECONDS, min(left, part))
                looks.variables(view, seconds)
                seen.append(view)
            except NoAnswer as why:
                if view is processes[0]:
                    notes.append(f"who holds what in process {view.pid} is not known: {why}")
        for view in largest:
            left = clock.left(after)
            if looks.goes_on(view) and not _has_told(asked[view.pid]) and left > _LEAST_SECONDS:
                with suppress(NoAnswer):  # it has ended; what was seen of it remains
                    looks.libraries(view, left)
        for view in seen:
            with suppress(NoAnswer):
                told[view.pid] = looks.told(view)
        notes += [looks.note()] if looks.note() else []
        if unread:
            notes.append(f"the objects of {len(unread)} smaller processes were not read: no time")
        silent: dict[str, list[int]] = {}
        for view in largest:
            try:
                with clock.waiting():
                    answer = asked[view.pid].result()
            except NoAnswer as why:
                silent.setdefault(str(why), []).append(view.pid)
                continue
            if answer is not None:
                told[view.pid] = answer
        notes += [_in_vain(pids, why, told) for why, pids in silent.items()]
    return {view.pid: told[view.pid] for view in processes if view.pid in told}


def _in_vain(pids: Sequence[int], why: str, told: Mapping[int, Told]) -> str:
    """That processes which listen did not tell, in a line."""
    shown = ", ".join(map(str, sorted(pids)[:_MOST_SHOWN])) + " ..." * (len(pids) > _MOST_SHOWN)
    who = f"process {shown} was" if len(pids) == 1 else f"processes {shown} were"
    text = f"{who} asked who holds the memory, in vain: {why}"
    if walked := sum(pid in told for pid in pids):
        of = "" if len(pids) == 1 else f" in {walked} of them"
        text += f"; what objects hold{of} was read from outside"
    return text + " (--wait gives more time)"


def _has_told(asked: Future[Told | None]) -> bool:
    return asked.done() and asked.exception() is None and asked.result() is not None


def _in_time(processes: Sequence[ProcessView], pid: int, clock: _Time) -> bool:
    """Whether the heap of a process can be followed before there shall be an answer."""
    heap = sum(
        part.resident
        for view in processes
        if view.pid == pid
        for part in view.parts
        if part.layer in (Layer.HEAP, Layer.ARENAS, Layer.OBJECTS)
    )
    return clock.left(_LAST + heap / _FOLLOWED_A_SECOND) > 0


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
    view: ProcessView,
    told: Told | None,
    deal: Deal,
    private: int,
    look: Look | None,
    clock: _Time,
    wait: float,
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
        left = clock.left()
        if left < _LEAST_SECONDS:
            break
        if ask and look is not None:
            told = _told_again(view, told, partial(look, timeout=min(wait, left)))
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
