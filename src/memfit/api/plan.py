"""`plan`: predict the peak memory of a run before it starts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from memfit.analyses.earlier_learn import left_by, with_row
from memfit.api.child_errors import error_of
from memfit.errors import UsageError
from memfit.formulas.array_bytes import scaled
from memfit.formulas.run_rows import run_ledger
from memfit.libraries import library_of, likely_library
from memfit.measure.children import sandbox
from memfit.measure.children.import_cost import import_cost
from memfit.measure.kernel.proc import outside_note
from memfit.measure.survey.rehearsal import SECONDS
from memfit.model import Component, Ledger, Plan, Readings, RunSpec
from memfit.model.job import Answer, Job, Look, Status, TargetKind
from memfit.sources.script import imports_of, learn_calls, script_notes
from memfit.sources.target import job_of

if TYPE_CHECKING:
    from memfit.libraries.torch_spec.torch_run import TorchRun

Progress = Callable[[str], None]
_SMALLEST = 1024  # the most times that a rehearsal is smaller than the run
_WELL_MATCHED = 0.95  # a smaller share of bytes whose growth is known is worth a note
_TWICE = "the script calls learn() more than once; "
_FIRST = f"{_TWICE}the first call needs the most of the first two"
_SECOND = f"{_TWICE}the second call needs the most of the first two, and is what this plan shows"
_UNSEEN = f"{_TWICE}only the first call could be planned, so that a later one may need more"


@dataclass(frozen=True, kw_only=True)
class Surveyed:
    """One training of a target: how to come to it, its facts, readings and ledger."""

    job: Job
    spec: RunSpec
    readings: Readings
    ledger: Ledger


def plan(
    target: str | Path | TorchRun,
    *,
    args: Sequence[str] = (),
    probe: bool = False,
    limit: int | None = None,
    knobs: Mapping[str, int] | None = None,
    on: Sequence[str] = (),
    per: str = "",
    timeout: float = 120.0,
    progress: Progress | None = None,
) -> Plan:
    """Predict the peak memory of a run before it starts."""
    from memfit.analyses.capacity import capacity, default_hardware, parse_hardware
    from memfit.analyses.crossing import crossing
    from memfit.analyses.upper_bound import upper_bytes
    from memfit.checks import run_checks
    from memfit.measure.kernel import limits
    from memfit.model import Limit

    started = time.monotonic()
    hardware = [parse_hardware(name) for name in on] or default_hardware()
    limit_used = Limit.given(limit) or limits.memory_limit()
    job = job_of(target, args, knobs)
    with ThreadPoolExecutor(max_workers=2) as pool:
        base = pool.submit(import_cost, _imports(job))
        script = Path(job.target) if job.kind is TargetKind.SCRIPT else None
        twice = script is not None and learn_calls(script) > 1
        second = pool.submit(_second, job, timeout) if twice else None
        say(progress, "building the run in a child, up to its learn()")
        ended = sandbox.run(job, timeout=timeout, memory=sandbox.room())
        if ended.answer.status is not Status.SURVEYED:
            raise error_of(ended, job.target)
        found = _ledger_of(job, ended.answer, base)
        said, earlier = script_notes(script) if script else (), None
        if second is not None:
            found, earlier, note = _heavier(found, *second.result(), base)
            said += (note,)
    own_peak = ended.peak_bytes
    if probe:
        say(progress, "rehearsing it")
        found, peak = _rehearsed(found, timeout)
        own_peak = max(own_peak, peak)
    ledger, readings = found.ledger, found.readings
    if earlier is not None:
        ledger = with_row(ledger, earlier)
    if knobs:
        ledger = ledger.at(**_known_knobs(knobs, ledger.knobs))
    if per:
        _known_knobs({per: 1}, ledger.knobs)
    findings, advice = run_checks(found.spec, ledger, limit_used.bytes)
    return Plan(
        target=job.target,
        spec=found.spec,
        ledger=ledger,
        peak_bytes=ledger.peak.bytes,
        upper_bytes=upper_bytes(ledger, readings),
        limit=limit_used,
        method="probe" if probe else "survey",
        capacity=tuple(capacity(ledger, h) for h in hardware),
        crossing=crossing(ledger, limit_used.bytes),
        findings=findings,
        advice=advice,
        notes=(
            *(*job.notes, *found.spec.notes, *readings.notes, *said, *_matched_note(readings)),
            *outside_note(ended.outside_bytes, ended.peak_bytes),
        ),
        seconds=time.monotonic() - started,
        planner_peak_bytes=own_peak,
        changed=dict(knobs or {}),
        per=per,
    )


def say(progress: Progress | None, text: str) -> None:
    if progress is not None:
        progress(text)


def _imports(job: Job) -> tuple[str, ...]:
    """What the run's process imports before it does anything, as far as can be told by now."""
    if job.kind is TargetKind.SPEC:
        return (*library_of(job.spec["library"]).imports, *job.spec["imports"])
    modules = imports_of(Path(job.target)) if job.kind is TargetKind.SCRIPT else ()
    library = likely_library(modules)
    return library.imports if library is not None else ("numpy", "torch")


def _ledger_of(job: Job, answer: Answer, base: Future[int]) -> Surveyed:
    """The child's facts and readings as a ledger."""
    assert answer.spec is not None and answer.readings is not None
    spec, library = answer.spec, library_of(answer.spec.library)
    told = tuple(job.spec.get("imports", ()))
    # What the text of a target did not tell, its live objects do.
    known = (*library.imports, *told) == _imports(job)
    imports = base.result() if known else import_cost((*library.imports, *told))
    readings = replace(answer.readings, base=imports)
    ledger = run_ledger(spec, library.rows(spec, readings))
    return Surveyed(job=job, spec=spec, readings=readings, ledger=ledger)


def _second(job: Job, timeout: float) -> tuple[Job, Answer]:
    """What a script's second learn() says of itself, the first one skipped."""
    skipping = replace(job, skip=1)
    return skipping, sandbox.run(skipping, timeout=timeout, memory=sandbox.room()).answer


def _heavier(
    first: Surveyed, job: Job, answer: Answer, base: Future[int]
) -> tuple[Surveyed, Component | None, str]:
    """Which of two learn() calls needs more, what the first leaves, and what to say of it."""
    if answer.status is not Status.SURVEYED or answer.again:
        return first, None, _UNSEEN
    then = _ledger_of(job, answer, base)
    left = left_by(first.ledger, alive=answer.earlier_alive)
    if with_row(then.ledger, left).peak.bytes <= first.ledger.peak.bytes:
        return first, None, _FIRST
    return then, left, _SECOND


def _rehearsed(found: Surveyed, timeout: float) -> tuple[Surveyed, int]:
    """Rehearsed at full size where the room allows, else at smaller sizes, in another child."""
    from memfit.analyses.reconcile import reconcile

    ended = sandbox.run(
        replace(found.job, look=Look.REHEARSE, scales=tuple(_scales(found)), seconds=SECONDS),
        timeout=timeout,
        memory=sandbox.room(),
    )
    answer = ended.answer
    if answer.status is not Status.REHEARSED:
        note = "the rehearsal did not finish, so the plan is the one without it: "
        last = (answer.output or ended.output or answer.status).strip().splitlines()[-1]
        readings = replace(found.readings, notes=(*found.readings.notes, note + last))
        return replace(found, readings=readings), ended.peak_bytes
    readings = replace(found.readings, rehearsed=answer.rehearsed)
    ledger = reconcile(found.ledger, answer.rehearsed, found.spec.scale)
    return replace(found, readings=readings, ledger=ledger), ended.peak_bytes


def _scales(found: Surveyed) -> list[dict[str, int]]:
    """The run's own size if that has room here, else three sizes that have, smallest first."""
    from memfit.analyses.upper_bound import upper_bytes

    shrink, room = 1, sandbox.room()
    while shrink < _SMALLEST:
        smaller = scaled(found.spec, shrink=shrink)
        if upper_bytes(found.ledger.at(**smaller), found.readings) <= room:
            break
        shrink *= 2
    shrinks = [shrink] if shrink == 1 else [4 * shrink, 2 * shrink, shrink]
    return [scaled(found.spec, shrink=s) for s in shrinks]


def _matched_note(readings: Readings) -> tuple[str, ...]:
    if readings.matched_share >= _WELL_MATCHED:
        return ()
    note = (
        f"of the bytes that an update allocates, {readings.matched_share:.0%} grow with the batch "
        "in a way that two small updates show; the rest is taken as it is, and the upper bound "
        "allows for that. --probe measures it"
    )
    return (note,)


def _known_knobs(knobs: Mapping[str, int], known: Mapping[str, int]) -> dict[str, int]:
    unknown = sorted(set(knobs) - set(known))
    if unknown:
        raise UsageError(
            f"this run has no setting {', '.join(unknown)}: it has {', '.join(sorted(known))}"
        )
    if bad := [name for name, value in knobs.items() if value < 1]:
        raise UsageError(f"{', '.join(bad)} must be at least 1: use --set {bad[0]}=1 or more")
    return dict(knobs)
