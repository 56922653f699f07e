"""What malloc holds beyond what a run asks for, as replays of its allocations have read it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from memfit.formulas.array_bytes import scaled, unit
from memfit.formulas.shared_rows import probed
from memfit.model import (
    Component,
    Evidence,
    Kind,
    Ledger,
    Readings,
    RunSpec,
    Size,
    between_readings,
    const,
    maximum,
    phase_of,
)
from memfit.model.size import total

Knobs = Mapping[str, int]
_ASKED = "bytes asked for"
_REPLAYED = "the run's allocations replayed through this machine's malloc"


def with_slack(
    spec: RunSpec, readings: Readings, components: Sequence[Component], warm: int
) -> list[Component]:
    """The rows and malloc's own, so that each moment is `warm` and what its replay added."""
    rows = list(_given_way(spec, readings, components, warm))
    return [*rows, *_slack(spec, readings, rows, warm)]


def _slack(
    spec: RunSpec, readings: Readings, components: Sequence[Component], warm: int
) -> Iterator[Component]:
    """What malloc holds beyond what is asked for, at each moment of the replay.

    It neither grows nor shrinks with a run in a way that a formula tells: blocks of some sizes
    leave holes, larger ones have mappings of their own. So it is stated as it was read, beside the
    bytes that are asked for, whichever setting made them more.
    """
    named = _malloc_rows(spec, components)
    asked = _asked(named, readings.growth)
    for moment in readings.growth:
        held = {
            asked.evaluate(knobs): max(0, warm + growth - _alive(named, moment, knobs))
            for knobs, growth in reversed(list(_replays(spec, readings, moment)))
        }
        size = between_readings(asked, held, _ASKED)
        yield Component(
            name=f"allocator.slack.{moment.split('.')[-1]}",
            kind=Kind.FRAGMENTATION,
            size=size,
            phases=("rollout", "evaluate", "save") if moment == "rollout" else (moment,),
            evidence=_evidence(1 if size.is_const else len(held)),
        )


def _asked(named: Ledger, moments: Iterable[str]) -> Size:
    """The most that rows ask of malloc in any moment: what it has got, it keeps."""
    most = const(0)
    for moment in moments:
        sizes = (c.size for c in named.components if c.alive_in(moment))
        most = maximum(most, total(size for size in sizes if not size.is_const))
    return most


def _replays(spec: RunSpec, readings: Readings, moment: str) -> Iterator[tuple[Knobs, int]]:
    """Where a moment was replayed and what it added there: at the run's own size first."""
    samples, line = unit(spec), readings.growth[moment]
    for knobs in (spec.knobs, {**spec.knobs, **scaled(spec, times=2)}):
        yield knobs, line.at(samples.evaluate(knobs))
    for one in readings.further:
        if moment in one.growth:
            yield {**spec.knobs, **one.knobs}, one.growth[moment]


def _evidence(readings: int) -> Evidence:
    if readings == 1:
        return probed(f"{_REPLAYED}: a reading at this size")
    return probed(f"{_REPLAYED}: readings at {readings} sizes, on straight lines between them")


def _malloc_rows(spec: RunSpec, components: Sequence[Component]) -> Ledger:
    """The rows that replays of the run's allocations hold: not workers, nor what is mapped."""
    mapped = {a.name for a in spec.arrays if a.mapped}
    mapped |= {window.name for window in spec.windows}
    kept = (c for c in components if c.kind is not Kind.WORKER and c.name not in mapped)
    return Ledger(components=tuple(kept), knobs=spec.knobs)


def _alive(ledger: Ledger, moment: str, knobs: Knobs) -> int:
    return sum(c.size.evaluate(knobs) for c in ledger.components if c.alive_in(moment))


def _given_way(
    spec: RunSpec, readings: Readings, components: Sequence[Component], warm: int
) -> Iterator[Component]:
    """The rows, with less scratch where all together say more than the allocations came to."""
    moment = spec.update.moment
    less = 0
    if (growth := readings.growth.get(moment)) is not None:
        named = _alive(_malloc_rows(spec, components), moment, spec.knobs)
        less = min(0, warm + growth.at(readings.unit) - named)
    for c in components:
        if less and c.kind is Kind.SCRATCH and phase_of(c.phases[0]) == phase_of(moment):
            yield replace(c, size=maximum(c.size + less, 0))
        else:
            yield c
