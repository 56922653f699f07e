"""One fix tried: what it was predicted to save, what it saved, and what else it changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from memfit.api.optimize_runs import Run, Runs
from memfit.api.plan import plan
from memfit.errors import MemfitError
from memfit.model import Changes, Ledger, Plan
from memfit.model.optimized import TriedFix

_TELLS = 0.1  # of a saving: runs that differ by more tell too little of it
_SEEN = ("start", "build", "rollout", "update")  # the phases that a run of a few updates has


@dataclass(frozen=True, kw_only=True)
class RunTarget:
    """What is planned and run: a target with its arguments, and settings that hold throughout."""

    target: str
    args: tuple[str, ...]
    module: bool
    knobs: Mapping[str, int]
    limit: int | None
    timeout: float
    network: bool

    def planned(self, changes: Changes, knobs: Mapping[str, int] = {}) -> Plan:
        """The plan of the run with these changes."""
        return plan(
            self.target,
            args=self.args,
            module=self.module,
            knobs={**self.knobs, **changes.knobs, **knobs},
            changes=replace(changes, knobs={}),
            limit=self.limit,
            timeout=self.timeout,
            network=self.network,
            quick=True,
            all_findings=True,
        )

    def peak(self, changes: Changes, knobs: Mapping[str, int] = {}) -> int | None:
        """The planned peak of what a short run has, None where it cannot be planned."""
        try:
            return seen_peak(self.planned(changes, knobs).ledger)
        except MemfitError:
            return None


def seen_peak(ledger: Ledger) -> int:
    """The peak of the phases that a run of a few updates has."""
    phases = ledger.phase_bytes
    return max((phases[name] for name in _SEEN if name in phases), default=0)


def predicted_fix(fix: TriedFix, what: RunTarget, planned: Plan) -> TriedFix:
    """What a change is to save: a plan of the changed run says it, where no formula did."""
    if fix.saves_bytes is not None:
        return fix
    then = what.peak(fix.changes)
    return replace(fix, saves_bytes=None if then is None else seen_peak(planned.ledger) - then)


def tried_fix(fix: TriedFix, runs: Runs, *, again: bool) -> TriedFix:
    """A change, made: what it saves, and what else it changes."""
    before = len(runs.unchanged)
    run = _middle_run(fix, runs)
    if again and not run.failed:
        runs.run_unchanged()
    return judged(fix, run, runs, before)


def _middle_run(fix: TriedFix, runs: Runs) -> Run:
    """The run with a change, or the middle one of several where one tells too little.

    That is where unchanged runs differ by more than a tenth of what was saved: malloc keeps other
    blocks from run to run. These are then repeated too.
    """
    made = [runs.run(fix.changes)]
    while len(made) < runs.repeats and runs.differs_by > _TELLS * _saved(made, runs):
        if len(runs.unchanged) < runs.repeats:
            runs.run_unchanged()
        made.append(runs.run(fix.changes))
    whole = sorted((run for run in made if run.peak_bytes is not None), key=_peak)
    return made[0] if made[0].failed or not whole else whole[len(whole) // 2]


def _peak(run: Run) -> int:
    return run.peak_bytes or 0


def _saved(made: Sequence[Run], runs: Runs) -> float:
    """What a change saves as its runs tell it so far; without end where one has failed."""
    peaks = [run.peak_bytes for run in made]
    if runs.peak_bytes is None or None in peaks:
        return float("inf")
    return abs(runs.peak_bytes - median(map(_peak, made)))


def judged(fix: TriedFix, run: Run, runs: Runs, before: int) -> TriedFix:
    """What one run says of a change.

    The peak of the unchanged run is that of all runs so far, so that one odd run counts little.
    """
    own = runs.peak_bytes
    # As many updates are then of other samples, and another amount of work.
    other_work = bool(fix.changes.knobs.keys() - {"buffer_size"})
    measured = None if own is None or run.peak_bytes is None else own - run.peak_bytes
    why = run.failed
    if not why and own is None:
        why = f"the unchanged run could not be measured: {runs.unchanged[0].failed}"
    return replace(
        fix,
        peak_bytes=run.peak_bytes,
        measured_bytes=measured,
        identical=runs.identical(run),
        time_ratio=None if other_work else runs.time_ratio(run, before),
        time_noise=None if other_work else runs.time_noise,
        why_not=why,
    )


def measured_again(fix: TriedFix, runs: Runs) -> TriedFix:
    """The same with its saving beside all unchanged runs, the later ones too."""
    own = runs.peak_bytes
    if fix.peak_bytes is None or own is None:
        return fix
    return replace(fix, measured_bytes=own - fix.peak_bytes)


def joined_fix(chosen: Sequence[TriedFix]) -> TriedFix:
    changes = Changes()
    for one in chosen:
        changes = changes.with_all(one.changes)
    return TriedFix(
        codes=tuple(code for one in chosen for code in one.codes),
        change="; ".join(one.change for one in chosen),
        saves_bytes=None,
        safe=all(one.safe for one in chosen),
        to_rounding=any(one.to_rounding for one in chosen),
        changes=changes,
    )
