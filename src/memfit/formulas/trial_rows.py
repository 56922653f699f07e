"""From what a trial of a training loop has shown to the rows of its ledger.

Every phase adds up to what the kernel counted in it: arrays by their holders, what malloc kept
free, and as temporaries the rest. Where a buffer was still filling, its row is what it will hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from memfit.formulas.array_bytes import reserved, resident
from memfit.formulas.run_rows import built_parts
from memfit.formulas.shared_rows import TRAINING, base_rows, measured
from memfit.formulas.worker_rows import env_rows
from memfit.model import (
    Component,
    Evidence,
    Kind,
    Ledger,
    Readings,
    RunSpec,
    Size,
    const,
    maximum,
)
from memfit.model.ledger import Place
from memfit.model.size import total
from memfit.model.trial import TrialAgain, TrialReading

_TEMPORARIES = {
    "update": ("activations", Kind.ACTIVATIONS, "activations, gradients on the way, minibatches"),
    "rollout": ("temporaries", Kind.SCRATCH, "what comes and goes while envs are stepped"),
    "evaluate": ("temporaries", Kind.SCRATCH, "what an evaluation adds"),
    "save": ("copies", Kind.COPIES, "what a checkpoint adds while it is written"),
    "build": ("temporaries", Kind.SCRATCH, "what came and went before the first step"),
}

OBJECTS = "run.objects"
_KEPT = "what malloc kept free between updates, for their activations to use again"


def trial_rows(spec: RunSpec, readings: Readings) -> Iterator[Component]:
    """Every component of a loop that was tried."""
    trial = readings.trial
    assert trial is not None
    again = trial.again
    rows = [*_fixed(readings, trial, _held(spec, trial.held, "rollout")), *env_rows(spec, readings)]
    objects = sum(_bytes(row) for row in rows if row.name == OBJECTS)
    yield from (_growing(row, spec, again) if row.name == OBJECTS else row for row in rows)
    yield from _arrays(spec)
    for phase, peak in trial.peaks.items():
        fixed = sum(_bytes(row) for row in rows if row.alive_in(phase))
        rest = peak - fixed - _held(spec, trial.held, phase)
        grows = const(0)
        if again is not None and phase != "build" and phase in again.peaks:
            other = again.peaks[phase] - fixed - _held(spec, again.held, phase)
            if phase in TRAINING:
                other += objects - again.objects
            grows = _growth(spec, again, rest, other)
        yield from _rest(phase, rest, grows, trial)


def objects_in(ledger: Ledger) -> int:
    """What a trial held at its end that no array of a variable was."""
    sizes = zip(ledger.components, ledger.sizes, strict=True)
    return sum(size for row, size in sizes if row.name == OBJECTS)


def _growing(row: Component, spec: RunSpec, again: TrialAgain | None) -> Component:
    """Objects, such as graphs that a rollout keeps, on the line through this trial and another."""
    if again is None:
        return row
    grows = _growth(spec, again, _bytes(row), again.objects)
    return row if grows.is_const else replace(row, size=maximum(grows + row.size, 0))


def _growth(spec: RunSpec, again: TrialAgain, rest: int, other: int) -> Size:
    """What comes and goes beyond that of this trial where the run's arrays are larger.

    A line through two trials, over the bytes of the arrays that grow with settings and do not fill.
    """
    own = total(
        reserved(a, spec.knobs)
        for a in spec.arrays
        if a.filled is None and any(isinstance(n, str) for n in a.shape)
    )
    here, there = own.evaluate(spec.knobs), own.evaluate({**spec.knobs, **again.knobs})
    if here <= there or rest <= other:
        return const(0)
    return (own - here) * (rest - max(0, other)) // (here - there)


def _rest(phase: str, rest: int, grows: Size, trial: TrialReading) -> Iterator[Component]:
    """What the arrays and the libraries do not explain: first what malloc kept, then the others."""
    slack = 0 if phase == "build" else max(0, min(_slack(trial, phase), rest))
    if slack:
        yield Component(
            name=f"allocator.slack.{phase}",
            kind=Kind.FRAGMENTATION,
            size=const(slack),
            phases=(phase,),
            evidence=_seen(trial, _KEPT if phase == "update" else "what malloc kept, unused"),
        )
    name, kind, what = _TEMPORARIES[phase]
    if not grows.is_const:
        what += "; with other settings, on the line through this and a second trial"
    if rest > slack:
        yield Component(
            name=f"{phase}.{name}",
            kind=kind,
            size=maximum(grows + (rest - slack), 0),
            phases=(phase,),
            evidence=_seen(trial, f"the kernel's peak of this phase, less the other rows: {what}"),
        )


def _slack(trial: TrialReading, phase: str) -> int:
    """At the peak of an update, what malloc had free between updates is in use again."""
    grown = trial.peaks.get(phase, 0) - trial.now
    return trial.free if phase != "update" else max(0, trial.free - max(0, grown))


def _fixed(readings: Readings, trial: TrialReading, arrays: int) -> Iterator[Component]:
    """Libraries, what building loads, and first use; arrays have rows of their own."""
    built = trial.built - readings.processes_bytes
    imports = min(readings.base or built, built)
    last = trial.now - readings.processes_bytes
    known = last - arrays - min(trial.free, max(0, last - arrays - imports))
    rest = max(0, known - imports)
    early = max(0, min(rest, built - imports))
    rows = base_rows(
        imports=imports,
        built=early,
        used=0,
        where=f"a trial of {trial.length}: the process where it began to train",
        parts=dict(built_parts(readings)),
    )
    yield from (row for row in rows if row.name != "base.first_use")
    if rest > early:
        yield Component(
            name=OBJECTS,
            kind=Kind.OBJECTS,
            size=const(rest - early),
            phases=TRAINING,
            evidence=_seen(trial, "held at its end, and no array of a variable: graphs, objects"),
        )


def _arrays(spec: RunSpec) -> Iterator[Component]:
    for array in spec.arrays:
        yield Component(
            name=array.name,
            kind=Kind(array.kind),
            size=resident(array, spec.knobs),
            reserved=None if array.filled is None else reserved(array, spec.knobs),
            phases=array.phases or TRAINING,
            place=Place.MAIN,
            evidence=Evidence(kind=array.evidence, where=array.where),
        )


def _held(spec: RunSpec, held: Mapping[str, int], phase: str) -> int:
    """What the arrays of a phase held in a trial itself."""
    return sum(held.get(a.name, 0) for a in spec.arrays if phase in (a.phases or TRAINING))


def _bytes(row: Component) -> int:
    return row.size.evaluate({}) if row.size.is_const else 0


def _seen(trial: TrialReading, what: str) -> Evidence:
    return measured(f"a trial of {trial.length}: {what}")
