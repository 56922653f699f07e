"""From what a trial of a training loop has shown to the rows of its ledger.

Every phase adds up to what the kernel counted in it: arrays by their holders, what malloc kept
free, and as temporaries the rest. Where a buffer was still filling, its row is what it will hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from memfit.formulas.array_bytes import reserved, resident
from memfit.formulas.run_rows import built_parts
from memfit.formulas.shared_rows import TRAINING, base_rows, measured
from memfit.formulas.worker_rows import env_rows
from memfit.model import Component, Evidence, Kind, Readings, RunSpec, const
from memfit.model.ledger import Place
from memfit.model.trial import TrialReading

_TEMPORARIES = {
    "update": ("activations", Kind.ACTIVATIONS, "activations, gradients on the way, minibatches"),
    "rollout": ("temporaries", Kind.SCRATCH, "what comes and goes while envs are stepped"),
    "evaluate": ("temporaries", Kind.SCRATCH, "what an evaluation adds"),
    "save": ("copies", Kind.COPIES, "what a checkpoint adds while it is written"),
    "build": ("temporaries", Kind.SCRATCH, "what came and went before the first step"),
}


def trial_rows(spec: RunSpec, readings: Readings) -> Iterator[Component]:
    """Every component of a loop that was tried."""
    trial = readings.trial
    assert trial is not None
    rows = [*_fixed(readings, trial, _alive(spec, trial, "rollout")), *env_rows(spec, readings)]
    yield from rows
    yield from _arrays(spec)
    for phase, peak in trial.peaks.items():
        held = _alive(spec, trial, phase) + sum(_bytes(r) for r in rows if r.alive_in(phase))
        yield from _rest(phase, peak - held, trial)


def _rest(phase: str, rest: int, trial: TrialReading) -> Iterator[Component]:
    """What the arrays and the libraries do not explain: first what malloc kept, then the others."""
    slack = 0 if phase == "build" else max(0, min(_slack(trial, phase), rest))
    if slack:
        yield Component(
            name=f"allocator.slack.{phase}",
            kind=Kind.FRAGMENTATION,
            size=const(slack),
            phases=(phase,),
            evidence=_seen(trial, "what malloc kept and nobody used"),
        )
    name, kind, what = _TEMPORARIES[phase]
    if rest > slack:
        yield Component(
            name=f"{phase}.{name}",
            kind=kind,
            size=const(rest - slack),
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
    yield from base_rows(
        imports=imports,
        built=early,
        used=rest - early,
        where=f"a trial of {trial.updates:,} updates: the process where it began to train",
        parts=dict(built_parts(readings)),
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


def _alive(spec: RunSpec, trial: TrialReading, phase: str) -> int:
    """What the arrays of a phase held in the trial itself."""
    held: Mapping[str, int] = trial.held
    return sum(held.get(a.name, 0) for a in spec.arrays if phase in (a.phases or TRAINING))


def _bytes(row: Component) -> int:
    return row.size.evaluate({}) if row.size.is_const else 0


def _seen(trial: TrialReading, what: str) -> Evidence:
    return measured(f"a trial of {trial.updates:,} updates: {what}")
