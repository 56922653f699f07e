"""Where a run goes over its limit: at which environment step, in which phase, and why."""

from __future__ import annotations

from memfit.model import Component, Crossing, Ledger, phase_of

LENGTH = "total_timesteps"


def crossing(ledger: Ledger, limit_bytes: int) -> Crossing | None:
    """The first step at which the run needs more than the limit, or None if it never does."""
    if ledger.peak.bytes <= limit_bytes:
        return None
    if _over(ledger, limit_bytes, _shortest(ledger)):
        return _at_once(ledger, limit_bytes)
    return _while_growing(ledger, limit_bytes)


def _shortest(ledger: Ledger) -> int:
    """The shortest run to ask about: one step; or the run itself where its length is unknown."""
    return min(1, ledger.knobs.get(LENGTH, 0))


def _while_growing(ledger: Ledger, limit_bytes: int) -> Crossing:
    """A run that fits at its first step and not at its last: a buffer fills."""
    below, above = _shortest(ledger), ledger.knobs[LENGTH]
    while above - below > 1:
        middle = (below + above) // 2
        if _over(ledger, limit_bytes, middle):
            above = middle
        else:
            below = middle
    then = ledger.at(**{LENGTH: above})
    moment = _first_moment_over(then, limit_bytes)
    growing = [c for c in ledger.components if c.alive_in(moment) and LENGTH in c.size.knobs]
    return Crossing(step=above, moment=moment, because=_largest(then, growing))


def _at_once(ledger: Ledger, limit_bytes: int) -> Crossing:
    """A run that never had room: it dies the first time that it comes to this moment."""
    ledger = ledger.at(**{LENGTH: _shortest(ledger)})
    moment = _first_moment_over(ledger, limit_bytes)
    alive = [c for c in ledger.components if c.alive_in(moment)]
    rollout = ledger.knobs.get("n_steps", 0) * ledger.knobs.get("n_envs", 0)
    return Crossing(
        step=rollout if phase_of(moment) == "update" else 0,
        moment=moment,
        because=_largest(ledger, alive),
    )


def _over(ledger: Ledger, limit_bytes: int, length: int) -> bool:
    return ledger.at(**{LENGTH: length}).peak.bytes > limit_bytes


def _first_moment_over(ledger: Ledger, limit_bytes: int) -> str:
    return next(m for m, amount in ledger.moment_bytes.items() if amount > limit_bytes)


def _largest(ledger: Ledger, components: list[Component]) -> str:
    return max(components, key=ledger.bytes_of).name
