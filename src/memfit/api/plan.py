"""`plan`: predict the peak memory of a run before it starts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from memfit.analyses.after_learn import with_after
from memfit.analyses.earlier_learn import left_by, with_row
from memfit.analyses.second_trial import is_complete, is_confirmed
from memfit.api.child_errors import error_of
from memfit.api.loop_trials import built, trial_job, tried_again
from memfit.api.plan_device import check_device, device_notes, for_card
from memfit.api.surveyed import Surveyed, imports_for, ledger_of
from memfit.errors import UsageError
from memfit.formulas.array_bytes import scaled
from memfit.measure.children import sandbox
from memfit.measure.children.import_cost import ImportCost, import_cost
from memfit.measure.kernel.proc import outside_note
from memfit.measure.survey.rehearsal import SECONDS
from memfit.model import (
    AfterEnd,
    AfterReading,
    Changes,
    Component,
    DevicePlan,
    Ledger,
    Plan,
    Readings,
    Rehearsed,
)
from memfit.model.job import Answer, Job, Look, Status
from memfit.sources.script import (
    goes_on_after,
    is_counted_loop,
    learn_calls,
    learns_again,
    script_notes,
)
from memfit.sources.target import job_of, module_job, text_of
from memfit.units import format_bytes

if TYPE_CHECKING:
    from memfit.analyses.capacity import Hardware
    from memfit.libraries.torch_spec.torch_run import TorchRun

Progress = Callable[[str], None]
_SMALLEST = 1024  # the most times that a rehearsal is smaller than the run
_TRIAL_SHARE = 0.9  # of what its child may take, a trial takes at most
_WELL_MATCHED = 0.95  # a smaller share of bytes whose growth is known is worth a note
_TWICE = "the script calls learn() more than once; "
_FIRST = f"{_TWICE}the first call needs the most of the first two"
_SECOND = f"{_TWICE}the second call needs the most of the first two, and is what this plan shows"
_AFTER_SECONDS = 10.0  # that the rest of a script is followed for
_MEASURED_BY_RUN = "not in this plan: memfit run measures all of it"
_UNSEEN = f"{_TWICE}only the first call could be planned, so that a later one may need more"
_ONE_TRIAL = (
    "no second trial has shown how this loop grows with its settings, so that the largest that fit "
    "are not told: --set KNOB=VALUE tries another value"
)
_DOUBTFUL = (
    "without a rehearsal, more than 5 % of the peak was in doubt, so the run was rehearsed at its "
    "real size; --quick leaves that out"
)


def plan(
    target: str | Path | TorchRun,
    *,
    args: Sequence[str] = (),
    probe: bool = False,
    quick: bool = False,
    limit: int | None = None,
    knobs: Mapping[str, int] | None = None,
    on: Sequence[str] = (),
    per: str = "",
    device: str = "cpu",
    timeout: float = 120.0,
    network: bool = False,
    real_env: bool = False,
    module: bool = False,
    all_findings: bool = False,
    changes: Changes | None = None,
    progress: Progress | None = None,
) -> Plan:
    """Predict the peak memory of a run before it starts; without `network`, it can use none.

    The target is a script, a notebook, a spec, a factory or a live object; with `module` the name
    of a module that is run. It is rehearsed with `probe`, and where much of it is in doubt without
    that, unless `quick`; `all_findings` shows trifles too. A loop of no known library is tried,
    with `real_env` without ever playing recorded steps of its env back. With the `device` "cuda",
    the run trains on the first card of `on`, and its ledger is of the machine around it. With
    `changes`, it has other parts than its own.
    """
    from memfit.analyses.capacity import capacity, default_hardware, parse_hardware
    from memfit.analyses.crossing import crossing
    from memfit.analyses.upper_bound import doubt_bytes, in_doubt, upper_bytes
    from memfit.checks import run_checks, without_trifles
    from memfit.measure.kernel import limits
    from memfit.model import Limit

    started = time.monotonic()
    hardware = [parse_hardware(name) for name in on] or default_hardware()
    card = check_device(device, hardware, probe=probe)
    quick = quick or card is not None  # a rehearsal is of the CPU
    limit_used = Limit.given(limit) or limits.memory_limit()
    asked = module_job(str(target), args) if module else job_of(target, args, knobs)
    asked = replace(asked, changes=changes or Changes())
    most = min(limit_used.bytes, int(_TRIAL_SHARE * sandbox.room()))
    job = trial_job(
        replace(asked, network=network, real_env=real_env, device=card is not None), most, timeout
    )
    with ThreadPoolExecutor(max_workers=3) as pool:
        base = pool.submit(import_cost, imports_for(job))
        script = text_of(job)
        twice = script is not None and learn_calls(script) > 1
        second = pool.submit(_second, job, timeout) if twice else None
        rest = goes_on_after(script) if script else ""
        after = pool.submit(_after, job, timeout) if rest else None
        say(progress, "building the run in a child, up to its learn()")
        job_built, ended, failed = built(job, knobs or {}, timeout)
        if ended.answer.status is not Status.SURVEYED:
            raise error_of(ended, job.target)
        found = ledger_of(job_built, ended.answer, base)
        if found.spec.scale and is_complete(found.readings) and not quick:
            say(progress, "trying it once more, with other settings")
            found = tried_again(found, timeout, base)
        looped = found.readings.trial is not None  # a learn() in its text is its own
        said, earlier = script_notes(script) if script and not looped else (), None
        if second is not None and not looped:
            found, earlier, note = _heavier(found, *second.result(), base)
            said += (note,)
        own_peak, followed = ended.peak_bytes, None
        if after is not None and not looped:
            own_peak = max(own_peak, after.result().peak_bytes)
            followed = _followed(after.result(), found.readings)
        said += () if looped else _after_notes(followed, rest)
    doubtful = in_doubt(found.ledger, found.readings)
    if found.readings.trial is None and (probe or (doubtful and not quick)):
        say(progress, "rehearsing it")
        found, peak = _rehearsed(found, timeout)
        own_peak = max(own_peak, peak)
    ledger, readings = found.ledger, found.readings
    if earlier is not None:
        ledger = with_row(ledger, earlier)
    if followed is not None and script is not None:
        line = followed.frames.line if followed.frames else 0
        ledger = with_after(ledger, followed, counted=is_counted_loop(script, line))
    if knobs:
        # What the run was built with need not be in a formula.
        given = found.job.knobs.keys() - ledger.knobs.keys()
        asked_for = {name: value for name, value in knobs.items() if name not in given}
        if failed is not None:
            _check_built(failed, asked_for, found, job.target)
        ledger = ledger.at(**_known_knobs(asked_for, ledger.knobs))
    on_card = None
    if card is not None:
        ledger, on_card = for_card(found, ledger, card)
        said += tuple(device_notes(found))
    if per:
        _known_knobs({per: 1}, ledger.knobs)
    spec = replace(found.spec, learns_again=bool(script and not looped and learns_again(script)))
    every = findings, advice = run_checks(spec, ledger, limit_used.bytes)
    if not all_findings:
        findings, advice = without_trifles(*every, ledger.peak.bytes)
    return Plan(
        target=job.target,
        spec=spec,
        ledger=ledger,
        peak_bytes=ledger.peak.bytes,
        upper_bytes=upper_bytes(ledger, readings),
        limit=limit_used,
        method="trial" if readings.trial else "probe" if readings.rehearsed else "survey",
        doubt=doubt_bytes(ledger, readings, ledger.peak.moment),
        capacity=tuple(
            capacity(_part(h, ledger, on_card), h, None if is_confirmed(readings) else ())
            for h in hardware
        ),
        crossing=crossing(ledger, limit_used.bytes),
        findings=findings,
        hidden_findings=len(every[0]) - len(findings),
        advice=advice,
        notes=(
            *(*job.notes, *found.spec.notes, *readings.notes, *said, *_matched_note(readings)),
            *([_DOUBTFUL] if doubtful and readings.rehearsed and not probe else []),
            *([_ONE_TRIAL] if found.spec.scale and not is_confirmed(readings) else []),
            *outside_note(ended.outside_bytes, ended.peak_bytes),
            *ended.notes,
        ),
        network=network,
        confinement=ended.answer.confinement,
        seconds=time.monotonic() - started,
        planner_peak_bytes=own_peak,
        changed=dict(knobs or {}),
        per=per,
        device=on_card,
        readings=readings,
        output=ended.output,
    )


def _part(hardware: Hardware, ledger: Ledger, on_card: DevicePlan | None) -> Ledger:
    """The rows to be judged by a machine or a card."""
    return on_card.ledger if on_card is not None and hardware.place == "device" else ledger


def say(progress: Progress | None, text: str) -> None:
    if progress is not None:
        progress(text)


def _second(job: Job, timeout: float) -> tuple[Job, Answer]:
    """What a script's second learn() says of itself, the first one skipped."""
    skipping = replace(job, skip=1)
    return skipping, sandbox.run(skipping, timeout=timeout, memory=sandbox.room()).answer


def _heavier(
    first: Surveyed, job: Job, answer: Answer, base: Future[ImportCost]
) -> tuple[Surveyed, Component | None, str]:
    """Which of two learn() calls needs more, what the first leaves, and what to say of it."""
    if answer.status is not Status.SURVEYED or answer.again:
        return first, None, _UNSEEN
    then = ledger_of(job, answer, base)
    left = left_by(first.ledger, alive=answer.earlier_alive)
    if with_row(then.ledger, left).peak.bytes <= first.ledger.peak.bytes:
        return first, None, _FIRST
    return then, left, _SECOND


def _after(job: Job, timeout: float) -> sandbox.Ended:
    """What follows a script's last learn(), every training passed over."""
    on = replace(job, look=Look.AFTER, seconds=_AFTER_SECONDS)
    return sandbox.run(on, timeout=timeout, memory=sandbox.room() // 2)


def _followed(ended: sandbox.Ended, readings: Readings) -> AfterReading | None:
    """What was seen of a script's rest, None where nothing was.

    One that took too much was ended; it had grown from where the survey's process was warm.
    """
    if ended.answer.status is Status.OVER_LIMIT:
        return AfterReading(grown=ended.peak_bytes - readings.warm, ended=AfterEnd.MEMORY)
    return ended.answer.after


def _after_notes(after: AfterReading | None, rest: str) -> tuple[str, ...]:
    """What of a script's rest the plan does not have, and from where on."""
    if not rest or (after is not None and after.ended in (AfterEnd.WHOLE, AfterEnd.ENOUGH)):
        return ()
    goes_on = f"the script goes on after learn(), {rest}"
    if after is None:
        return (f"{goes_on}, and what that takes is {_MEASURED_BY_RUN}",)
    if after.ended is AfterEnd.FAILED:
        how = f"and failed at line {after.ended_line} with nothing trained ({after.reason})"
    elif after.ended is AfterEnd.MEMORY:
        how = f"and was ended when it had taken {format_bytes(after.grown)} more"
    else:
        how = f"and was followed for {_AFTER_SECONDS:.0f} s, up to line {after.ended_line}"
    return (f"{goes_on}, {how}: what comes later is {_MEASURED_BY_RUN}",)


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
    rehearsed = tuple(_without(found.own, one) for one in answer.rehearsed)
    readings = replace(found.readings, rehearsed=rehearsed)
    ledger = reconcile(found.ledger, rehearsed, found.spec.scale)
    return replace(found, readings=readings, ledger=ledger), ended.peak_bytes


def _without(own: int, rehearsed: Rehearsed) -> Rehearsed:
    moments = {moment: peak - own for moment, peak in rehearsed.moments.items()}
    return replace(rehearsed, moments=moments)


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
    if readings.matched_share >= _WELL_MATCHED or not readings.unmatched:
        return ()
    note = (
        f"of the bytes that an update allocates, {readings.matched_share:.0%} grow with the batch "
        "in a way that two small updates show; the rest is taken as it is, and the upper bound "
        "allows for that. --probe measures it"
    )
    return (note,)


def _check_built(
    failed: sandbox.Ended, asked: Mapping[str, int], found: Surveyed, target: str
) -> None:
    """Refuse settings that are in no formula where the run could not be built with them."""
    lacking = sorted(asked.keys() - found.ledger.knobs.keys())
    if not lacking or not found.spec.settings.keys() >= set(lacking):
        return
    if failed.answer.status is not Status.NO_SETTING:
        raise error_of(failed, target)
    raise UsageError(
        f"the script gives {', '.join(lacking)} its value in a way that a plan cannot change, and "
        "no formula has it: change it in the script, or pass it as its own argument after --"
    )


def _known_knobs(knobs: Mapping[str, int], known: Mapping[str, int]) -> dict[str, int]:
    unknown = sorted(set(knobs) - set(known))
    if unknown:
        raise UsageError(
            f"this run has no setting {', '.join(unknown)} in its formulas: it has "
            f"{', '.join(sorted(known))}"
        )
    if bad := [name for name, value in knobs.items() if value < 1]:
        raise UsageError(f"{', '.join(bad)} must be at least 1: use --set {bad[0]}=1 or more")
    return dict(knobs)
