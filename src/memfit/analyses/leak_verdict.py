"""Whether an environment leaks: its memory at episode ends, where it should be back where it was.

A run has legs: one to warm up, one of the frames that were asked for, and where something grew in
it, further ones, each of which doubles the number of episodes. What is judged is what is in use,
counted to the byte after Python's garbage was collected: a leak goes on growing in each leg at the
same pace, in most parts of a leg, and not in one step. Where memory grows and what is in use does
not, address space that was reserved before is being filled, or malloc keeps what was freed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from memfit.analyses.line import fit
from memfit.model.profile import Counted, EnvReading, Growing, Judgement, MemoryVerdict
from memfit.units import KIB, MIB, format_bytes

_BYTES = (Counted.PYTHON, Counted.MALLOC, Counted.MAPPED, Counted.OTHERS)
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
_EXPLAINED, _ARENA = 1.5, 2 * MIB  # mapped memory that Python's objects explain
_MUCH, _MUCH_SHARE = MIB, 0.02  # growth of memory itself that is judged
_PAGES = 2 * MIB  # growth of a leg from which pages tell what a byte in use takes
_STEPS = 1 / 3  # of a pace, that what grows in steps may be off a line
_MOST = 0.5  # of a growth: so much of it explains it


@dataclass(frozen=True, kw_only=True)
class _Pace:
    """Growth by the frame and by the episode, and an interval around the latter."""

    per_frame: float = 0.0
    per_episode: float = 0.0
    low: float = 0.0
    high: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Legs:
    """Full readings after garbage was collected, by leg, each with the end of the leg before."""

    warm: EnvReading
    legs: tuple[tuple[EnvReading, ...], ...]

    @classmethod
    def of(cls, readings: Sequence[EnvReading]) -> Legs:
        full = [r for r in readings if r.full and r.collected]
        warm, legs = full[0], []
        last = warm
        for number in sorted({r.leg for r in full if r.leg > 0}):
            own = [r for r in full if r.leg == number]
            legs.append((last, *own))
            last = own[-1]
        return cls(warm=warm, legs=tuple(legs))

    @property
    def last(self) -> EnvReading:
        return self.legs[-1][-1]


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
    """Whether the last leg grew by enough pages to say what a leak costs in the long run."""
    return _weighed(Legs.of(readings))


def _weighed(found: Legs) -> bool:
    leg = found.legs[-1]
    return leg[-1].held - leg[0].held >= _PAGES


def judge(readings: Sequence[EnvReading], trimmed: int = 0) -> Judgement:
    """The verdict; `trimmed` is what malloc gave back at the end when it was asked to."""
    found = Legs.of(readings)
    grown = growing(readings)
    if grown:
        return _leaking(found, grown, trimmed)
    used = max(0, _in_use(found.last) - _in_use(found.warm))
    held = found.last.held - found.warm.held - used  # beyond what is in use
    if held >= _much(found.warm):
        filled, room = _filled(found.warm, found.last)
        if filled >= _MOST * held and room > 0:
            ends, pace = found.last.held + room, _pace(found, _held)
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
    amount = _held if _by_pages(found, grown) else _in_use
    pace = _pace(found, _held, last_only=True) if amount is _held else _long_run(found)
    first = found.warm
    episodes = found.last.episode - first.episode
    over = f"{episodes:,} episodes" if episodes else f"{found.last.frame - first.frame:,} frames"
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


def _in_use(reading: EnvReading) -> int:
    return reading.counts.get(Counted.PYTHON, 0) + reading.counts.get(Counted.MALLOC, 0)


def _held(reading: EnvReading) -> int:
    return reading.held


def _by_pages(found: Legs, grown: Sequence[Counted]) -> bool:
    """Whether bytes are those of the kernel's pages: what is mapped need not be touched."""
    if {Counted.MAPPED, Counted.OTHERS, Counted.THREADS, Counted.PROCESSES} & set(grown):
        return True
    leg = found.legs[-1]
    mapped, used = leg[-1].blocks - leg[0].blocks, _in_use(leg[-1]) - _in_use(leg[0])
    return mapped > _MOST * used


def _long_run(found: Legs) -> _Pace:
    """What goes on being in use, in pages of the kernel where enough of them came to tell.

    From the end of the first leg to the last: tables that double come in steps, which a line
    through the middle of it leaves out. Steps that are larger than that belong to no leak.
    """
    pace, first = _pace(found, _in_use), found.legs[0][-1]
    if pace.per_frame <= 0:
        return pace
    frames = found.last.frame - first.frame
    all_of_it = (_in_use(found.last) - _in_use(first)) / max(1, frames) / pace.per_frame
    times = all_of_it if abs(all_of_it - 1) <= _STEPS else 1.0
    leg = found.legs[-1]
    pages, used = _slope(leg, _held), _slope(leg, _in_use)
    if _weighed(found) and pages > 0 and used > 0:
        times *= pages / used
    return _Pace(
        per_frame=times * pace.per_frame,
        per_episode=times * pace.per_episode,
        low=min(pace.low, pace.per_episode or pace.per_frame) * times,
        high=max(pace.high, pace.per_episode or pace.per_frame) * times,
    )


def _slope(leg: Sequence[EnvReading], amount: Callable[[EnvReading], int]) -> float:
    line = fit([(r.frame, amount(r)) for r in leg])
    return line.bytes_per_unit if line else 0.0


def _pace(found: Legs, amount: Callable[[EnvReading], int], *, last_only: bool = False) -> _Pace:
    """Bytes a frame and an episode by a line through the legs after the first, and its interval.

    With `last_only`, through the last one: before, what was free was used first.
    """
    later = found.legs[-1:] if last_only else found.legs[1:] or found.legs
    points = [later[0][0], *(r for leg in later for r in leg[1:])]
    frames = fit([(r.frame, amount(r)) for r in points])
    episodes = fit([(r.episode, amount(r)) for r in points])
    pace = episodes or frames
    if frames is None or pace is None:
        return _Pace()
    slope = pace.bytes_per_unit
    return _Pace(
        per_frame=frames.bytes_per_unit,
        per_episode=episodes.bytes_per_unit if episodes else 0.0,
        low=pace.low if pace.low is not None else slope,
        high=pace.high if pace.high is not None else slope,
    )


def _growing(found: Legs, what: Counted) -> Growing:
    pace = _pace(found, lambda r: r.counts.get(what, 0))
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
    if not _enough(leg, what, parts=True):
        return False
    paces = _paces(leg, what)
    half = len(paces) // 2
    early, late = median(paces[:half] or paces), median(paces[half:])
    if late < _LATE * early and _rate(leg, what) < _rate(before, what):
        return False
    if len(legs) < 3:  # the leg before has the first uses of things in it
        return _rate(before, what) > 0
    return _rate(leg, what) >= _SLOWER * _rate(before, what) > 0


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
    python = leg[-1].counts[Counted.PYTHON] - leg[0].counts[Counted.PYTHON]
    return Counted.THREADS in grown or mapped <= _EXPLAINED * max(0, python) + (
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


def _stable(found: Legs) -> str:
    """How stable it is, in a sentence."""
    leg = found.legs[-1]
    grown = _in_use(leg[-1]) - _in_use(leg[0])
    episodes = leg[-1].episode - leg[0].episode
    over = f"{episodes:,} episodes" if episodes else f"{leg[-1].frame - leg[0].frame:,} frames"
    all_of_it = _in_use(found.last) - _in_use(found.warm)
    said = f"what is in use changed by {grown:+,} bytes over {over}"
    if len(found.legs) > 1 and all_of_it >= _A_LEG > grown:
        said = f"it grew by {format_bytes(all_of_it)} at first, and has stopped: {said}"
    held = found.last.held - found.warm.held
    if held - max(0, all_of_it) >= _much(found.warm):
        said += f"; {format_bytes(held)} of pages came that nothing in use explains"
    return said
