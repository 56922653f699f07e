"""Whether an environment leaks: its memory at episode ends, where it should be back where it was.

A run has legs: one to warm up, one of the frames that were asked for, and where something grew in
it, further ones, each of which doubles the number of episodes. What is judged is what is in use,
counted to the byte after Python's garbage was collected: a leak goes on growing in each leg at the
same pace, in most parts of a leg, and not in one step. Where memory grows and what is in use does
not, address space that was reserved before is being filled, or malloc keeps what was freed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from memfit.analyses import leak_pace
from memfit.analyses.leak_pace import Legs, Pace, in_use
from memfit.model.profile import Counted, EnvReading, Growing, Judgement, MemoryVerdict
from memfit.units import KIB, MIB, format_bytes

_BYTES = (Counted.PYTHON, Counted.MALLOC, Counted.MAPPED, Counted.SHARED, Counted.OTHERS)
# Whose bytes are those of the kernel's pages: what is mapped need not be touched.
_BY_PAGES = {
    *(Counted.MAPPED, Counted.SHARED, Counted.OTHERS),
    *(Counted.THREADS, Counted.PROCESSES),
}
_NUMBERS = (Counted.FILES, Counted.THREADS, Counted.PROCESSES)
# What an episode, or a frame where none ends, must add at least, and a leg in all.
_AN_EPISODE, _A_FRAME, _A_LEG = 128.0, 8.0, 4 * KIB
_PAGES_A_LEG = 256 * KIB  # of other processes, whose memory is known by the page
_PAGES_SUSPECTED = 32 * KIB
_NUMBERS_A_LEG = 3
_PARTS = 0.7  # of a leg's parts must grow
_OF_MEDIAN = 0.2  # of the usual part's pace: such a part grows
_LATE = 0.45  # the later half's pace as a share of the earlier one's: else growth is ending
_SLOWER = 0.5  # a leg's pace as a share of that of the leg before: else growth is ending
# A leg's growth must to so much of it lie above all but the highest readings of earlier legs.
_NEW, _HIGH = 0.5, 0.8
# Python maps an arena for 63 or 64 of its pools, of which one may have come that is not used yet.
_EXPLAINED, _ARENA = 64 / 63, MIB + 64 * KIB
_MUCH, _MUCH_SHARE = MIB, 0.02  # growth of memory itself that is judged
_MOST = 0.5  # of a growth: so much of it explains it


def suspected(readings: Sequence[EnvReading]) -> bool:
    """Whether something grew in the latest leg, so that it is worth going on."""
    found = Legs.of(readings)
    leg = found.legs[-1]
    if any(_enough(leg, what, parts=False) for what in (*_BYTES, *_NUMBERS)):
        return True
    later = leg if len(found.legs) > 1 else found.legs[0]
    return later[-1].held - later[0].held >= _much(found.warm)


def growing(readings: Sequence[EnvReading]) -> tuple[Counted, ...]:
    """What has grown for good, as far as these legs tell."""
    found = Legs.of(readings)
    if len(found.legs) < 2:
        return ()
    leg, before = found.legs[-1], found.legs[-2]
    grown = [what for what in (*_BYTES, *_NUMBERS) if _grows(leg, before, what, found.legs)]
    if Counted.MAPPED in grown and _is_explained(leg, grown):
        grown.remove(Counted.MAPPED)
    return tuple(grown)


def weighed(readings: Sequence[EnvReading]) -> bool:
    """Whether it grew by enough pages to say what a leak costs in the long run."""
    return leak_pace.weighed(Legs.of(readings))


def judge(readings: Sequence[EnvReading], trimmed: int = 0) -> Judgement:
    """The verdict; `trimmed` is what malloc gave back at the end when it was asked to."""
    found = Legs.of(readings)
    grown = growing(readings)
    if grown:
        return _leaking(found, grown, trimmed)
    used = max(0, in_use(found.last) - in_use(found.warm))
    held = found.last.held - found.warm.held - used  # beyond what is in use
    if held >= _much(found.warm):
        filled, room = _filled(found.warm, found.last)
        if filled >= _MOST * held and room > 0:
            ends, pace = found.last.held + room, leak_pace.line_of(found, leak_pace.held)
            return Judgement(
                verdict=MemoryVerdict.FILLING,
                why=f"it fills address space that it had reserved: {format_bytes(filled)} so far, "
                f"and {format_bytes(room)} are left, then it ends",
                grown_bytes=held,
                ends_at_bytes=ends,
                trimmed_bytes=trimmed,
                bytes_per_frame=pace.per_frame,
                bytes_per_episode=pace.per_episode,
                low=pace.low,
                high=pace.high,
            )
        if trimmed >= _MOST * held:
            return Judgement(
                verdict=MemoryVerdict.RETAINED,
                why=f"it grew by {format_bytes(held)} while nothing more was in use: malloc keeps "
                f"what was freed, and gave {format_bytes(trimmed)} back when it was asked to",
                grown_bytes=held,
                trimmed_bytes=trimmed,
            )
    return Judgement(
        verdict=MemoryVerdict.STABLE,
        why=_stable(found),
        grown_bytes=held,
        trimmed_bytes=trimmed,
    )


def waiting_garbage(readings: Sequence[EnvReading]) -> int:
    """The most that was in use at a frame only until Python's garbage was collected there.

    It is no leak, and takes memory all the same until Python's collector runs by itself.
    """
    found = [
        before.counts[Counted.MALLOC] - after.counts[Counted.MALLOC]
        for before, after in pairwise(readings)
        if before.frame == after.frame and after.collected and not before.collected
    ]
    most = max(found, default=0)
    return most if most >= _much(readings[0]) else 0


def bounded(judgement: Judgement, *, ends_at: int, what: str) -> Judgement:
    """The same growth, where its holder is known to end it."""
    return Judgement(
        verdict=MemoryVerdict.FILLING,
        why=what,
        growing=judgement.growing,
        bytes_per_frame=judgement.bytes_per_frame,
        bytes_per_episode=judgement.bytes_per_episode,
        low=judgement.low,
        high=judgement.high,
        grown_bytes=judgement.grown_bytes,
        ends_at_bytes=ends_at,
        trimmed_bytes=judgement.trimmed_bytes,
    )


def _leaking(found: Legs, grown: Sequence[Counted], trimmed: int) -> Judgement:
    rows = tuple(_growing(found, what) for what in grown)
    amount, pace = _pace(found, grown)
    first = found.warm
    episodes = found.last.episode - first.episode
    over = _over(episodes, found.last.frame - first.frame)
    names = ", ".join(what.value for what in grown)
    return Judgement(
        verdict=MemoryVerdict.LEAKING,
        why=f"{names} grew in each of {len(found.legs)} legs, over {over}, the last of which "
        "doubled their number",
        growing=rows,
        grown_bytes=amount(found.last) - amount(found.warm),
        trimmed_bytes=trimmed,
        bytes_per_frame=pace.per_frame,
        bytes_per_episode=pace.per_episode,
        low=pace.low,
        high=pace.high,
    )


def _pace(found: Legs, grown: Sequence[Counted]) -> tuple[leak_pace.Amount, Pace]:
    """What a leak is weighed by, and how fast it grows."""
    leg = found.legs[-1]
    used = in_use(leg[-1]) - in_use(leg[0])
    if leg[-1].blocks - leg[0].blocks > _MOST * used and not leak_pace.weighed(found):
        return leak_pace.held, leak_pace.last_line_of(found, leak_pace.held)
    if not _BY_PAGES & set(grown):
        return in_use, leak_pace.long_run(found)
    if leak_pace.weighed(found):
        return leak_pace.held, leak_pace.last_line_of(found, leak_pace.held)
    return leak_pace.in_use_and_apart, leak_pace.line_of(found, leak_pace.in_use_and_apart)


def _growing(found: Legs, what: Counted) -> Growing:
    pace = leak_pace.line_of(found, lambda r: r.counts.get(what, 0))
    return Growing(
        what=what,
        per_frame=pace.per_frame,
        per_episode=pace.per_episode,
        low=pace.low,
        high=pace.high,
    )


def _grows(
    leg: Sequence[EnvReading],
    before: Sequence[EnvReading],
    what: Counted,
    legs: Sequence[Sequence[EnvReading]],
) -> bool:
    """Whether a count grew in this leg and in the one before, in most parts, and at one pace."""
    if not (_enough(leg, what, parts=True) and _is_new(leg, what, legs[:-1])):
        return False
    paces = _paces(leg, what)
    half = len(paces) // 2
    early, late = median(paces[:half] or paces), median(paces[half:])
    if late < _LATE * early and _rate(leg, what) < _rate(before, what):
        return False
    if len(legs) < 3:  # the leg before has the first uses of things in it
        return _rate(before, what) > 0
    return _rate(leg, what) >= _SLOWER * _rate(before, what) > 0


def _is_new(
    leg: Sequence[EnvReading], what: Counted, earlier: Sequence[Sequence[EnvReading]]
) -> bool:
    """Whether a leg ends above what there was before, or only where a wave had been already."""
    before = sorted(r.counts.get(what, 0) for one in earlier for r in one)
    usual = before[round(_HIGH * (len(before) - 1))]
    end = leg[-1].counts.get(what, 0)
    return end - usual >= _NEW * (end - leg[0].counts.get(what, 0))


def _enough(leg: Sequence[EnvReading], what: Counted, *, parts: bool) -> bool:
    """Whether it grew by enough, and with `parts`, in most parts of the leg."""
    grown = leg[-1].counts.get(what, 0) - leg[0].counts.get(what, 0)
    if what in _NUMBERS:
        if not parts:
            return grown > 0
        steps = _paces(leg, what)
        return grown >= _NUMBERS_A_LEG and sum(s > 0 for s in steps) >= _PARTS * len(steps)
    least = _A_LEG
    if what is Counted.OTHERS:
        least = _PAGES_A_LEG if parts else _PAGES_SUSPECTED
    if grown < least or _rate(leg, what) < _floor(leg):
        return False
    steps = _paces(leg, what)
    usual = median(steps)
    risen = sum(step >= max(_OF_MEDIAN * usual, 0.5 * _floor(leg)) for step in steps)
    return not parts or risen >= _PARTS * len(steps)


def _units(first: EnvReading, last: EnvReading) -> int:
    """Episodes between two readings, or frames where none has ended."""
    return last.episode - first.episode or last.frame - first.frame


def _floor(leg: Sequence[EnvReading]) -> float:
    return _AN_EPISODE if leg[-1].episode > leg[0].episode else _A_FRAME


def _rate(leg: Sequence[EnvReading], what: Counted) -> float:
    grown = leg[-1].counts.get(what, 0) - leg[0].counts.get(what, 0)
    return grown / max(1, _units(leg[0], leg[-1]))


def _paces(leg: Sequence[EnvReading], what: Counted) -> list[float]:
    """What each part of a leg added, by its length."""
    ended = leg[-1].episode > leg[0].episode
    found = []
    for a, b in pairwise(leg):
        units = b.episode - a.episode if ended else b.frame - a.frame
        found.append((b.counts.get(what, 0) - a.counts.get(what, 0)) / max(1, units))
    return found


def _is_explained(leg: Sequence[EnvReading], grown: Sequence[Counted]) -> bool:
    """Whether mapped memory grew for what is counted otherwise: Python's arenas, stacks."""
    mapped = leg[-1].counts[Counted.MAPPED] - leg[0].counts[Counted.MAPPED]
    pools = leg[-1].pools - leg[0].pools
    return Counted.THREADS in grown or mapped <= _EXPLAINED * max(0, pools) + (
        _ARENA if Counted.PYTHON in grown else 0
    )


def _much(warm: EnvReading) -> int:
    return max(_MUCH, round(_MUCH_SHARE * warm.held))


def _filled(first: EnvReading, last: EnvReading) -> tuple[int, int]:
    """What was filled of address space that was there at the first reading, and what is left."""
    filled = room = 0
    for start, (reserved, resident) in last.rooms.items():
        if start not in first.rooms:
            continue
        grown = resident - first.rooms[start][1]
        if grown > 0 and reserved == first.rooms[start][0]:
            filled += grown
            room += reserved - resident
    return filled, room


def _over(episodes: int, frames: int) -> str:
    if not episodes:
        return f"{frames:,} frames"
    return "1 episode" if episodes == 1 else f"{episodes:,} episodes"


def _stable(found: Legs) -> str:
    """How stable it is, in a sentence."""
    leg = found.legs[-1]
    grown = in_use(leg[-1]) - in_use(leg[0])
    episodes = leg[-1].episode - leg[0].episode
    over = _over(episodes, leg[-1].frame - leg[0].frame)
    all_of_it = in_use(found.last) - in_use(found.warm)
    said = f"what is in use changed by {grown:+,} bytes over {over}"
    if len(found.legs) > 1 and all_of_it >= _A_LEG > grown:
        said = f"it grew by {format_bytes(all_of_it)} at first, and has stopped: {said}"
    held = found.last.held - found.warm.held
    if held - max(0, all_of_it) >= _much(found.warm):
        said += f"; {format_bytes(held)} of pages came that nothing in use explains"
    return said
