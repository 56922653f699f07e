"""From a child's answer to a ledger: one training of a target, its facts and its readings."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace

from memfit.formulas.run_rows import run_ledger
from memfit.libraries import library_of, likely_library
from memfit.measure.children.import_cost import ImportCost, import_cost
from memfit.measure.children.without_memfit import own_bytes, trial_alone
from memfit.model import Ledger, Readings, RunSpec
from memfit.model.job import Answer, Job, TargetKind
from memfit.sources.script import imports_of
from memfit.sources.target import text_of


@dataclass(frozen=True, kw_only=True)
class Surveyed:
    """One training of a target: how to come to it, its facts, readings and ledger.

    `own` are bytes of memfit's modules in its child, which no figure has in it.
    """

    job: Job
    spec: RunSpec
    readings: Readings
    ledger: Ledger
    own: int


def imports_for(job: Job) -> tuple[str, ...]:
    """What the run's process imports before it does anything, as far as can be told by now."""
    if job.kind is TargetKind.SPEC:
        return (*library_of(job.spec["library"]).imports, *job.spec["imports"])
    text = text_of(job)
    modules = imports_of(text) if text is not None else ()
    library = likely_library(modules)
    return library.imports if library is not None else ("numpy", "torch")


def ledger_of(job: Job, answer: Answer, base: Future[ImportCost]) -> Surveyed:
    """The child's facts and readings as a ledger."""
    assert answer.spec is not None and answer.readings is not None
    spec, library = answer.spec, library_of(answer.spec.library)
    told = tuple(job.spec.get("imports", ()))
    # What the text of a target did not tell, its live objects do.
    known = (*library.imports, *told) == imports_for(job)
    cost = base.result() if known else import_cost((*library.imports, *told))
    own = own_bytes(answer, cost, answer.mapped)
    readings = replace(
        answer.readings,
        base=cost.bytes,
        stopped=answer.readings.stopped - own,
        warm=answer.readings.warm - own,
        trial=trial_alone(answer, cost),
        imported=_beyond(answer.imports, cost.modules),
    )
    ledger = run_ledger(spec, library.rows(spec, readings))
    return Surveyed(job=job, spec=spec, readings=readings, ledger=ledger, own=own)


def _beyond(imports: Mapping[str, Mapping[str, int]], known: frozenset[str]) -> dict[str, int]:
    """What each import added, the modules apart that the libraries import anyway."""
    added = {
        asked: sum(size for name, size in parts.items() if name not in known)
        for asked, parts in imports.items()
    }
    return {asked: size for asked, size in added.items() if size}
