"""`optimize`: make each fix of a run in a child, train a little, and say what it really saves."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from memfit.analyses.best_set import best_set, candidates
from memfit.api.check import settings_for as check_settings_for
from memfit.api.optimize_goal import Reaching, parse_goal
from memfit.api.optimize_patch import left_over, patched_with, script_to_patch, write_patch
from memfit.api.optimize_places import place_of
from memfit.api.optimize_runs import REPEATS, Runs
from memfit.api.plan import say
from memfit.api.tried_fixes import (
    RunTarget,
    joined_fix,
    measured_again,
    predicted_fix,
    seen_peak,
    tried_fix,
)
from memfit.checks import wanted
from memfit.dropins.settings import Settings, settings_for
from memfit.errors import UsageError
from memfit.model import Changes, Plan, least_worth
from memfit.model.optimized import Optimized, TriedFix
from memfit.sources.target import job_of, module_job
from memfit.units import format_bytes

Progress = Callable[[str], None]
_EVERY = 2  # fixes that are run between two runs of the unchanged target
MALLOC, THREADS = "MF012", "MF410"


def optimize(
    target: str | Path = "",
    *,
    args: Sequence[str] = (),
    module: bool = False,
    goal: str | int | None = None,
    limit: int | None = None,
    knobs: Mapping[str, int] | None = None,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    safe_only: bool = False,
    quick: bool = False,
    repeats: int = REPEATS,
    timeout: float = 120.0,
    network: bool = False,
    write: str | Path | None = None,
    engine: str = "",
    progress: Progress | None = None,
) -> Optimized:
    """Try every fix of a run alone, then the best set together, and measure what they save.

    Each is made in a child that trains for a few real updates with the same seeds; nothing of the
    target is edited. `goal` is a size (`8GiB`) or a value of a setting that is to fit into the
    limit (`n_envs=64`). With `quick`, the unchanged target is run twice, and not again between
    the fixes. Where runs differ by too much to tell a saving, a change and the unchanged target are
    run up to `repeats` times. With the `engine` "ray", runs are made on the nodes of a cluster.
    """
    started = time.monotonic()
    codes = wanted(*_codes(select, ignore))
    asked = parse_goal(goal)
    what = RunTarget(
        target=str(target),
        args=tuple(args),
        module=module,
        knobs=dict(knobs or {}),
        limit=limit,
        timeout=timeout,
        network=network,
    )
    job = module_job(what.target, args) if module else job_of(target, args, knobs)
    job = replace(job, network=network, knobs={} if job.spec else dict(what.knobs))
    script = script_to_patch(job, write)
    say(progress, "planning it")
    planned = what.planned(Changes())
    limit_bytes = planned.limit.bytes
    if asked is not None and asked.knobs:
        asked = replace(asked, bytes=limit_bytes)
        unknown = sorted(set(asked.knobs) - set(planned.ledger.knobs))
        if unknown:
            raise UsageError(
                f"--goal {asked.text}: this run has no setting {', '.join(unknown)}; it has "
                f"{', '.join(sorted(planned.ledger.knobs))}"
            )
    with place_of(engine, job, timeout) as place:
        runs = Runs(job=job, timeout=timeout, place=place, repeats=repeats)
        fixes = _fixes(planned, codes, select, safe_only=safe_only, described=bool(job.spec))
        _first_runs(runs, len(fixes), progress)
        runs.ahead([fix.changes for fix in fixes])
        tried, least = [], least_worth(planned.peak_bytes) // 2
        for number, proposed in enumerate(fixes, 1):
            say(progress, f"fix {number} of {len(fixes)}: {proposed.code}, {proposed.change}")
            fix = predicted_fix(proposed, what, planned)
            if fix.changes.variables and (fix.saves_bytes or 0) < least:
                continue
            again = not quick and (number % _EVERY == 0 or number == len(fixes))
            tried.append(tried_fix(fix, runs, again=again))
        tried = [measured_again(fix, runs) for fix in tried]
        chosen = best_set(tried, runs.peak_bytes or planned.peak_bytes)
        together = _together(chosen, runs, what, planned, progress, again=not quick)
        if asked is not None:
            found = Reaching(
                goal=asked,
                tried=tried,
                together=together,
                runs=runs,
                what=what,
                planned=planned,
                progress=progress,
            )
            asked, together = found.reach()
        made = patched_with(script, together)
        return Optimized(
            target=planned.target,
            patch=made.diff(script.name) if made is not None and script is not None else "",
            written=write_patch(made, script, write),
            peak_bytes=runs.peak_bytes,
            planned_bytes=planned.peak_bytes,
            upper_bytes=planned.upper_bytes,
            limit_bytes=limit_bytes,
            limit_source=planned.limit.source,
            tried=tuple(sorted(tried, key=lambda one: -(one.measured_bytes or 0))),
            together=together,
            goal=asked,
            updates=runs.updates,
            cycles=max((r.trained.cycles for r in runs.unchanged if r.trained), default=0),
            runs=runs.count,
            filled=any(r.trained.filled for r in runs.unchanged if r.trained),
            repeatable=runs.repeatable,
            notes=(
                *_notes(runs, planned),
                *place.notes,
                *runs.notes,
                *left_over(made, written=write is not None),
            ),
            network=network,
            confinement=runs.confinement,
            seconds=time.monotonic() - started,
        )


def _codes(select: Sequence[str], ignore: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    if select or ignore:
        check_settings_for([""], select, ignore)  # refuses codes that nobody has
    return select, ignore


# -- what is tried ---------------------------------------------------------------------------------


def _fixes(
    planned: Plan,
    codes: frozenset[str],
    select: Sequence[str],
    *,
    safe_only: bool,
    described: bool,
) -> list[TriedFix]:
    """Every change that a check proposes and memfit can make, and settings of malloc and threads.

    What has no saving here is planned with the change when it is tried.
    """
    found = [
        TriedFix(
            codes=(advice.code,),
            change=advice.change,
            saves_bytes=None if fix.estimated else advice.saves_bytes,
            safe=fix.safe,
            to_rounding=fix.to_rounding,
            costs=fix.costs,
            changes=fix.changes,
        )
        for advice, fix in candidates(
            planned.spec, planned.ledger, planned.limit.bytes, codes, safe_only=safe_only
        )
        if _can_be_set(planned, fix.changes, described=described)
    ]
    recommended = settings_for(planned)
    if MALLOC in codes and recommended.arenas is not None:
        malloc = Settings(arenas=recommended.arenas, mmap_threshold=recommended.mmap_threshold)
        found.append(_setting(MALLOC, malloc, safe=True))
    threads_wanted = THREADS in codes or not select
    if recommended.threads is not None and threads_wanted and not safe_only:
        found.append(_setting(THREADS, Settings(threads=recommended.threads), safe=False))
    return found


def _setting(code: str, settings: Settings, *, safe: bool) -> TriedFix:
    return TriedFix(
        codes=(code,),
        change=f"{settings.shell()} before the command",
        saves_bytes=None,
        safe=safe,
        to_rounding=not safe,
        changes=Changes(variables=settings.environment()),
    )


def _can_be_set(planned: Plan, changes: Changes, *, described: bool) -> bool:
    """Whether the run has these settings; a loop has those that its text gives values to.

    How a run updates can be changed where it is only `described`, by a spec.
    """
    known = planned.spec.settings
    if changes.update and not described:
        return False
    return not known or set(changes.knobs) <= set(known)


# -- runs ------------------------------------------------------------------------------------------


def _first_runs(runs: Runs, fixes: int, progress: Progress | None) -> None:
    say(progress, "training it for a few updates, as it is")
    first = runs.run_unchanged()
    if runs.rehearsed:
        say(progress, "no update came in time: it is rehearsed at its own size instead")
    if fixes and not first.failed:
        say(progress, "once more, to see whether two runs are the same")
        runs.run_unchanged()


def _together(
    chosen: Sequence[TriedFix],
    runs: Runs,
    what: RunTarget,
    planned: Plan,
    progress: Progress | None,
    *,
    again: bool,
) -> TriedFix | None:
    """The chosen fixes at once; None where there are none."""
    if not chosen:
        return None
    if len(chosen) == 1:
        return chosen[0]
    codes = ", ".join(one.code for one in chosen)
    say(progress, f"together: {codes}")
    return tried_fix(predicted_fix(joined_fix(chosen), what, planned), runs, again=again)


def _notes(runs: Runs, planned: Plan) -> list[str]:
    """What to know of the figures."""
    notes = []
    if runs.rehearsed:
        notes.append(
            "no update came in time, so that the run was rehearsed at its own size, by a part of "
            "its own code: whether training stays the same, and times, cannot be told"
        )
    if runs.repeatable is False:
        notes.append(
            "two runs of the unchanged target ended with other parameters, although Python, numpy "
            "and torch had the same seeds: whether a fix keeps training the same cannot be told"
        )
    if runs.repeatable is None and not runs.rehearsed and len(runs.unchanged) > 1:
        notes.append("it has no parameters of torch: whether training stays the same is not known")
    if runs.job.ranks > 1:
        notes.append(f"one of {runs.job.ranks} processes that the launcher would start was run")
    full = planned.ledger.peak
    if full.bytes > seen_peak(planned.ledger):
        notes.append(
            f"the planned peak, {format_bytes(full.bytes)}, comes in {full.moment}, which a run of "
            "a few updates has not: savings are of what comes before"
        )
    return notes
