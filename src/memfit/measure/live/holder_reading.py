"""Reads a live tree and asks its processes who holds it, again where their answers do not fit.

Telling takes seconds and a training goes on meanwhile, so that a reading is judged by what it
leaves without a holder. Whoever asks brings the way in which memory is dealt out to holders.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from memfit.errors import UsageError
from memfit.measure.kernel.process_memory import Span
from memfit.measure.live import process_tree
from memfit.measure.live.inside_view import look_inside
from memfit.measure.live.listener_client import NO_ROLES, NoAnswer
from memfit.model import HeldReadings, Layer, ProcessView, Told
from memfit.model.explanation import Dealt

Look = Callable[..., Told | None]
Deal = Callable[[ProcessView, Told | None], Dealt]

_PATIENCE = 120.0
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
    roles: Mapping[str, str] = NO_ROLES,
) -> HolderReading:
    """Read a process and all below it; with `inside`, ask those that listen.

    `roles` says what classes of RL libraries are in a training. With `native`, pointers are
    followed through the heap; by default where a process told.
    """
    processes = process_tree.read_tree(pid, children=children)
    told: dict[int, Told] = {}
    look = partial(look_inside, timeout=_PATIENCE, roles=roles)
    notes: list[str] = []
    for view in processes if inside else ():
        try:
            answer = look(view, duplicates=duplicates)
        except NoAnswer as why:
            notes.append(f"process {view.pid} was asked who holds its memory, in vain: {why}")
            continue
        if answer is not None:
            told[view.pid] = answer

    def numbers(pid: int) -> list[Span] | None:
        wanted = pid in told if native is None else native
        return _places(told.get(pid)) if wanted else None

    if told or native:  # telling takes seconds: what is dealt out is what there is now
        processes = process_tree.read_tree(pid, children=children, numbers=numbers)
    private = sum(view.private for view in processes)
    dealt: dict[int, Dealt] = {}
    readings = []
    for i, view in enumerate(processes):
        if view.pid not in told and not native:
            continue
        again = look if view.pid in told and native is not False else None
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
