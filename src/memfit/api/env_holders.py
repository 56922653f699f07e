"""Who holds what grew in an environment, with classes, and whether a holder ends the growth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memfit.analyses.grown_holders import bound_of, grown, unnamed
from memfit.analyses.leak_verdict import bounded
from memfit.api.env_verdict import Followed, Follower
from memfit.model import Bound, Counted, GrownHolder, Judgement, MemoryVerdict
from memfit.model.stepping_words import Command

_CONFIRMED = 1.3  # of a holder's capacity: stepped so far to see that it is kept, where time is
_MOST_SECONDS = 3.0
_SPARE = 1.25  # times what grew in all: more is no holder's growth
_MOST_OF_IT = 0.5  # of what grew must be with a holder whose bound counts
_LOOK_SECONDS = 20.0  # for each look at what all packages hold
_OF_LEFT = 10  # a look takes such a part of the time that the child has left
# Growth that is not looked for in packages: what only so many may come of, or who holds no bytes.
_APART = {Counted.THREADS, Counted.PROCESSES, Counted.FILES, Counted.OTHERS}
_STRETCH = 4  # such a part of the frames lies between two of these looks


def _of_packages(found: Followed, follower: Follower) -> list[GrownHolder]:
    """What grew with a package, where the run's own variables do not hold it.

    The first look names it from whichever package reaches it first, and by its beginning alone
    where packages have too many names; the second one, from the package whose class holds it.
    """
    last = found.readings[-1]
    frames = round(last.frame * min(1 / _STRETCH, _MOST_SECONDS / max(last.seconds, 1e-9)))
    holders = _grown_over(frames, follower, None)
    if not holders:
        return []
    path = holders[0].path
    owner = str(follower.stepper.tell([path]).get(path, {}).get("owner", "")).partition(".")[0]
    if owner in ("", "builtins"):
        return holders
    nearer = _grown_over(frames, follower, [owner])
    return nearer if nearer and nearer[0].path.startswith(f"{owner}.") else holders


def _grown_over(
    frames: int, follower: Follower, packages: Sequence[str] | None
) -> list[GrownHolder]:
    """What grew with the run and with these packages over so many frames more."""
    stepper = follower.stepper
    seconds = min(_LOOK_SECONDS, stepper.left / _OF_LEFT)
    before, begin = stepper.holders(seconds, packages), stepper.said.frames
    if not before:
        return []
    stepper.step(begin + frames, begin + 2 * frames)
    stepper.do(Command.COLLECT)
    after = stepper.holders(seconds, packages)
    return grown(before, after, stepper.said.frames - begin) if after else []


def _kept(bound: Bound, holder: GrownHolder, found: Followed, follower: Follower) -> Bound:
    """The bound after as many frames more as fill it, where there is time to see that."""
    pace = holder.elements / max(1, found.frames_between)
    wanted = _CONFIRMED * bound.capacity - bound.length
    last = found.readings[-1]
    frames = round(wanted / pace) if pace > 0 else 0
    if frames <= 0 or frames * last.seconds / max(1, last.frame) > _MOST_SECONDS:
        return bound
    follower.stepper.step(last.frame + frames, last.frame + 2 * frames)
    told = follower.stepper.tell([bound.path]).get(bound.path, {})
    length = told.get("length")
    # A capacity that was passed is not told as one any more.
    return replace(bound, length=bound.capacity + 1 if length is None else int(length))


def named(found: Followed, follower: Follower) -> tuple[list[GrownHolder], Judgement]:
    """Who holds what grew, with classes; and the verdict, where a holder ends the growth."""
    judgement = found.judgement
    if judgement.verdict is not MemoryVerdict.LEAKING or not found.held_after:
        return [], judgement
    holders = grown(found.held_before, found.held_after, found.frames_between)
    if not follower.stepper.walked_all:  # what was not seen at first has not grown by itself
        holders = [one for one in holders if one.bytes <= _SPARE * found.grown_between]
    growing = {row.what for row in judgement.growing}
    if unnamed(judgement, holders) and Counted.PYTHON in growing and not _APART & growing:
        of_packages = _of_packages(found, follower)
        if not unnamed(judgement, of_packages):
            holders = of_packages
    told = follower.stepper.tell([holder.path for holder in holders])
    named = []
    for holder in holders:
        about = told.get(holder.path, {})
        named.append(
            replace(
                holder,
                owner=str(about.get("owner", "")),
                where=str(about.get("where", "")),
                bound=bound_of(about, holder.path),
            )
        )
    if not named or named[0].bound is None:
        return named, judgement
    bound, share = named[0].bound, named[0].bytes / max(1, sum(h.bytes for h in named))
    bound = _kept(bound, named[0], found, follower)
    if share < _MOST_OF_IT or bound.length > bound.capacity:
        return [replace(one, bound=None) for one in named], judgement
    left = bound.capacity - bound.length
    each = named[0].bytes / max(1, named[0].elements)
    ends = found.readings[-1].held + round(left * each)
    why = (
        f"{bound.path} fills up: {bound.what} is {bound.capacity:,}, and {bound.length:,} are there"
    )
    return named, bounded(judgement, ends_at=ends, what=why)
