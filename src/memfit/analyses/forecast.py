"""How a run's memory goes on: stable, filling, growing or leaking, since when, and when it is full.

The one judgement of `run`, `watch`, `explain FILE` and trackers, over a tree and its processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from statistics import median

from memfit.analyses.filling import filled_between
from memfit.analyses.growth import (
    Window,
    cut,
    goes_on,
    grows,
    latest,
    may_grow,
    steps_of,
    thinned,
    windows,
)
from memfit.analyses.limit_time import limit_time
from memfit.analyses.slowing import has_slowed, slowing, slows
from memfit.model import Forecast, Growth, Member, Reading
from memfit.units import MIB

# Seconds for which it must grow at one pace, and growth of the second half of them as a multiple of
# the first's: caches that saturate grow so too, but not for as long.
_LASTING, _STILL = 90.0, 0.9
_TIMES = 7  # that it must have grown: what is kept a few times over comes in as many steps
_EVEN = (0.6, 1.7)  # growth of the second half as a multiple of the first's, at one pace
_FILLED, _FILLED_SHARE = 4 * MIB, 0.005  # of the peak, within a window: it is being filled
_FILL_SECONDS = 5.0
_FULL = 0.01  # of what was filled: so little room left is none
_NAMED = 0.25  # of the tree's growth: a process that is named
_LEAVING, _LEAVING_SECONDS = 0.8, 10.0  # below this share of what it had, so long before its end
_LOOK_BACK = (0.9, 0.8, 0.7)  # shares of a run at which a leak counts for all of it
_PACE_SECONDS = 2.0  # of steps told, to know their pace
_KEPT = 0.7  # of what a leak had added is still there
_UNKNOWN = Forecast(growth=Growth.UNKNOWN, bytes_per_second=0.0)


def forecast(
    readings: Sequence[Reading], limit: int | None, members: Iterable[Member] = ()
) -> Forecast:
    """What the readings so far say about the rest of the run."""
    if len(readings) < 2:
        return _UNKNOWN
    seen = thinned(readings)
    own, peak = _beside_filled(seen), max(r.bytes for r in seen)
    judged = windows(own)
    whole = latest(own, judged[0][0].begin) if judged else None
    leaking = _leaking(own, judged, peak)
    if leaking:
        window = _at_one_pace(leaking)
        found = Forecast(
            growth=Growth.LEAKING if _lasts(own, leaking) else Growth.GROWING,
            bytes_per_second=window.rate,
            since=window.begin,
            grown_bytes=round(window.rate * (window.end - window.begin)),
            members=tuple(_named(members, window)),
        )
        return _with_limit(found, seen, limit)
    if filled := _filling(seen, own, peak):
        return _with_limit(filled, seen, limit)
    if whole is not None and _slows(own, judged[0][0]) and goes_on(whole, peak):
        return slowing(whole, limit, seen[-1])
    if not judged or may_grow(judged[0][0], peak):
        return _UNKNOWN
    return Forecast(growth=Growth.STABLE, bytes_per_second=0.0)


def _beside_filled(seen: Sequence[Reading]) -> Sequence[Reading]:
    """The readings without what was filled of blocks that were reserved before."""
    if not seen[-1].filling:
        return seen
    beside = zip(seen, filled_between(seen), strict=True)
    return [replace(r, bytes=max(0, round(r.bytes - filled))) for r, filled in beside]


def _leaking(
    own: Sequence[Reading], judged: Sequence[tuple[Window, float]], peak: int
) -> list[Window]:
    """The windows in which it grows at one pace: it does not slow down."""
    if not judged:
        return []
    whole = latest(own, judged[0][0].begin)
    found = [window for window, before in judged if grows(window, before, peak)]
    return [w for w in found if not (_slows(own, w) or has_slowed(w, whole))]


def verdict(
    readings: Sequence[Reading], limit: int | None, members: Iterable[Member] = ()
) -> Forecast:
    """What somebody says of a run that has ended, who sees all of it.

    How it let go of its memory at its very end does not count. What leaked for most of the run and
    was never given back is a leak, whatever came last.
    """
    known, known_members = _without_leaving(readings), tuple(members)
    found = forecast(known, limit, known_members)
    if found.growth.at_one_pace or len(known) < 2:
        return _at_the_end(found)
    begin, end = known[0].seconds, known[-1].seconds
    for share in _LOOK_BACK:
        until = begin + share * (end - begin)
        before = [r for r in known if r.seconds <= until]
        after = [r.bytes for r in known if r.seconds > until]
        earlier = forecast(before, limit, known_members)
        if not earlier.growth.at_one_pace or earlier.since is None or not after:
            continue
        lost = before[-1].bytes - median(after)
        if until - earlier.since >= (end - begin) / 2 and lost <= (1 - _KEPT) * earlier.grown_bytes:
            return _at_the_end(earlier)
    return found


def _at_the_end(found: Forecast) -> Forecast:
    """What grew at one pace to the end is a leak: there is nothing more to wait for."""
    return replace(found, growth=Growth.LEAKING) if found.growth is Growth.GROWING else found


def _without_leaving(readings: Sequence[Reading]) -> Sequence[Reading]:
    """A run without the last seconds in which it fell."""
    if len(readings) < 8:
        return readings
    usual = median(r.bytes for r in readings[-max(4, len(readings) // 8) :])
    last = next(i for i in reversed(range(len(readings))) if readings[i].bytes >= _LEAVING * usual)
    short = readings[-1].seconds - readings[last].seconds <= _LEAVING_SECONDS
    return readings[: last + 1] if short else readings


def _slows(readings: Sequence[Reading], window: Window) -> bool:
    """Whether it does in long stretches, below most updates, or in short ones."""
    return slows(window) or slows(latest(readings, window.begin))


def _lasts(own: Sequence[Reading], leaking: Sequence[Window]) -> bool:
    """Whether it has grown at one pace for long and many times, and does so still."""
    return any(
        w.end - w.begin >= _LASTING
        and w.second_half >= _STILL * w.first_half
        and steps_of(own, w) >= _TIMES
        for w in leaking
    )


def _at_one_pace(leaking: Sequence[Window]) -> Window:
    """The longest window in which it grows evenly; the longest where none is so."""
    low, high = _EVEN
    even = (w for w in leaking if low * w.first_half <= w.second_half <= high * w.first_half)
    return next(even, leaking[0])


def _filling(readings: Sequence[Reading], own: Sequence[Reading], peak: int) -> Forecast | None:
    """Growth of blocks that are reserved already, which ends at their size."""
    last = readings[-1]
    since = last.seconds - max(_FILL_SECONDS, (last.seconds - readings[0].seconds) / 2)
    recent = [r for r in readings if r.seconds >= since]
    # Of the time before it began to be filled, nothing can be learnt.
    began = next((i for i, r in enumerate(recent) if r.filling > recent[0].filling), 0)
    begin = recent[max(0, began - 1)]
    filled, seconds = last.filling - begin.filling, last.seconds - begin.seconds
    if filled < max(_FILLED, _FILLED_SHARE * peak) or last.room <= _FULL * last.filling:
        return None
    beside = max(r.bytes for r in own if r.seconds >= since)
    return Forecast(
        growth=Growth.FILLING,
        bytes_per_second=filled / seconds,
        ends_at_bytes=beside + last.filling + last.room,
        since=begin.seconds,
        grown_bytes=filled,
    )


def _with_limit(found: Forecast, readings: Sequence[Reading], limit: int | None) -> Forecast:
    """With the time at which the limit is reached, if it is."""
    full, last = found.ends_at_bytes, readings[-1]
    if limit is None or found.since is None or (full is not None and full <= limit):
        return found
    if last.bytes >= limit:
        at = low = high = last.seconds
        return replace(found, reaches_limit_at=at, low=low, high=high)
    window = latest(readings, found.since)
    time, low, late = limit_time(window, limit, last.seconds)
    if time is None:
        return found
    return replace(found, reaches_limit_at=time, low=low, high=late, step=_step_at(readings, time))


def _named(members: Iterable[Member], tree: Window) -> Iterator[str]:
    """The processes in which a tree grows, where it has several."""
    several = list(members)
    for member in several if len(several) > 1 else ():
        own = [r for r in member.readings if tree.begin <= r.seconds <= tree.end]
        if len(own) > 1:
            window = cut(own, own[0].seconds, own[-1].seconds, len(tree.lows))
            if window.grown >= _NAMED * tree.grown:
                yield f"{member.pid} ({member.name})"


def _step_at(readings: Sequence[Reading], seconds: float) -> int | None:
    """The environment step at a time, by the pace so far."""
    known = [r for r in readings if r.step is not None]
    if len(known) < 2 or known[-1].seconds - known[0].seconds < _PACE_SECONDS:
        return None
    first, last = known[0], known[-1]
    assert first.step is not None and last.step is not None
    pace = (last.step - first.step) / (last.seconds - first.seconds)
    return round(last.step + pace * (seconds - last.seconds))
