"""The ways to run something at one value of a setting: a command, or a target in a child."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from memfit.api.child_errors import error_of
from memfit.api.loop_trials import is_loop, trial_job
from memfit.api.plan import Progress, plan, say
from memfit.api.surveyed import imports_for, ledger_of
from memfit.errors import MemfitError, UsageError
from memfit.measure.children import sandbox
from memfit.measure.children.import_cost import ImportCost, import_cost
from memfit.measure.survey.rehearsal import SECONDS
from memfit.model import Ledger, Outcome, Point
from memfit.model.job import Answer, Job, Look, Status, TargetKind
from memfit.model.trial import TrialEnd
from memfit.sources.target import SPEC, job_of

UPDATES = 2
_NO_MEMORY = ("MemoryError", "can't allocate memory", "Cannot allocate memory", "bad_alloc")
_KILLED = -9
_NO_UPDATE = "it was never seen to update: what an update takes is not in these peaks"
_TRIAL_SHARE = 0.9  # of what its child may take, a trial takes at most


def runner_of(
    target: str | Path | None,
    command: Sequence[str],
    knob: str,
    values: Sequence[int],
    *,
    network: bool = False,
) -> _Command | _Target:
    """Tell by what was given what is to be run."""
    is_spec = target is not None and Path(target).suffix == SPEC
    if target is not None and not (is_spec and command):
        return _Target(str(target), tuple(command), knob, values[0], network)
    if not command:
        raise UsageError(
            "nothing to measure: give a target, as in: memfit sweep train.py --over n_envs=1,10, "
            "or a command after --"
        )
    hole = f"{{{knob}}}"
    if not any(hole in word for word in command):
        raise UsageError(
            f"the command after -- does not use {hole}, so that every run would be the same: "
            f"write it where the value goes, as in: memfit sweep --over {knob}={values[0]} -- "
            f"python train.py --{knob} {hole}"
        )
    if target is not None:
        job_of(target, (), {knob: values[0]})  # refuses a setting that the spec does not have
    return _Command(tuple(command), knob, None if target is None else str(target))


@dataclass(frozen=True)
class _Command:
    """Any program; a spec may say what it is planned to take."""

    command: tuple[str, ...]
    knob: str
    spec: str | None

    @property
    def facts(self) -> Mapping[str, Any]:
        """All that its figures depend on."""
        return {"command": self.command, "in": str(Path.cwd()), **_files(self.command)}

    def run(
        self, value: int, *, memory: int, timeout: float, alive: Callable[[int], None]
    ) -> Point:
        """One run, to its end or to a limit."""
        from memfit.measure.children.measured_command import measure

        words = _with_value(self.command, self.knob, value)
        done = measure(words, memory=memory, timeout=timeout, alive=alive)
        outcome = Outcome.DONE
        if done.timed_out:
            outcome = Outcome.TIMED_OUT
        elif done.over_limit or done.exit_code == _KILLED:
            outcome = Outcome.OUT_OF_MEMORY
        elif done.exit_code:
            outcome = _failed(done.output)
        return Point(
            value=value,
            peak_bytes=done.peak_bytes,
            outside_bytes=done.outside_bytes,
            outcome=outcome,
            seconds=done.seconds,
            exit_code=done.exit_code,
            said=done.output,
        )

    def plan(self, progress: Progress | None) -> tuple[Ledger | None, tuple[str, ...]]:
        """The planned ledger, if it has the setting, and what to say of the figures."""
        return _ledger(self.spec, (), self.knob, progress) if self.spec else (None, ())


@dataclass(frozen=True)
class _Target:
    """A script, a spec or a factory, which learns in a child that cannot take anybody down."""

    target: str
    args: tuple[str, ...]
    knob: str
    smallest: int
    network: bool

    @property
    def facts(self) -> Mapping[str, Any]:
        here = {"target": self.target, "args": self.args, "in": str(Path.cwd())}
        return {**here, "network": self.network, **_files((self.target, *self.args))}

    def _job(self, value: int) -> Job:
        args = _with_value(self.args, self.knob, value)
        by_script = args != list(self.args)
        job = job_of(self.target, args, None if by_script else {self.knob: value})
        if job.kind is not TargetKind.SPEC and not by_script:
            job = replace(job, knobs={self.knob: value})
        return replace(
            job, look=Look.OBSERVE, updates=UPDATES, seconds=SECONDS, network=self.network
        )

    def run(
        self, value: int, *, memory: int, timeout: float, alive: Callable[[int], None]
    ) -> Point:
        job, peak, seen = self._job(value), 0, True
        if is_loop(job):
            tried = trial_job(job, int(_TRIAL_SHARE * memory), timeout)
            job = replace(tried, rewrite=bool(job.knobs))
        ended = sandbox.run(job, timeout=timeout, memory=memory, alive=alive)
        if job.look is Look.SURVEY and _is_of_library(ended.answer):
            ended = sandbox.run(self._job(value), timeout=timeout, memory=memory, alive=alive)
        answer = ended.answer
        match answer.status:
            case Status.OBSERVED | Status.REHEARSED:
                outcome = Outcome.DONE
            case Status.SURVEYED:
                outcome, peak, seen = _tried(job, answer)
            case Status.NO_SETTING:
                raise UsageError(self._lacking(answer.settings))
            case Status.TIMED_OUT:
                outcome = Outcome.TIMED_OUT
            case Status.OVER_LIMIT:
                outcome = Outcome.OUT_OF_MEMORY
            case Status.DIED if answer.exit_code == _KILLED:
                outcome = Outcome.OUT_OF_MEMORY
            case _:
                outcome = _failed(f"{ended.output}\n{answer.output}")
                if outcome is Outcome.FAILED and value == self.smallest:
                    raise error_of(ended, self.target)
        return Point(
            value=value,
            peak_bytes=peak or max(ended.peak_bytes, *answer.peaks.values(), 0),
            outside_bytes=ended.outside_bytes,
            outcome=outcome,
            seconds=ended.seconds,
            exit_code=answer.exit_code,
            said=answer.output or ended.output,
            confinement=answer.confinement,
            notes=ended.notes if seen else (*ended.notes, _NO_UPDATE),
        )

    def _lacking(self, known: Sequence[str]) -> str:
        own = f"{self.target} -- --{self.knob} {{{self.knob}}}"
        return (
            f"{self.knob} of {self.target} cannot be changed from outside (what can: "
            f"{', '.join(known)}): let the script take it as an argument, as in: memfit sweep "
            f"--over {self.knob}={self.smallest},{2 * self.smallest} {own}"
        )

    def plan(self, progress: Progress | None) -> tuple[Ledger | None, tuple[str, ...]]:
        args = _with_value(self.args, self.knob, self.smallest)
        return _ledger(self.target, args, self.knob, progress, network=self.network)


def _is_of_library(answer: Answer) -> bool:
    """Whether a program that looked like a loop trains by a library, in another of its files."""
    return answer.readings is not None and answer.readings.trial is None


def _tried(job: Job, answer: Answer) -> tuple[Outcome, int, bool]:
    """What a loop takes that was tried: its peak, with buffers as full as the run will fill them.

    One that was ended for its memory did not fit. The last word is whether it has updated.
    """
    base = Future[ImportCost]()
    base.set_result(import_cost(imports_for(job)))
    found = ledger_of(job, answer, base)
    trial = found.readings.trial
    full = trial is not None and trial.ended is TrialEnd.MEMORY
    outcome = Outcome.OUT_OF_MEMORY if full else Outcome.DONE
    return outcome, found.ledger.peak.bytes, trial is None or trial.updates > 0


def _with_value(words: Sequence[str], knob: str, value: int) -> list[str]:
    """A command with a value where it says `{knob}`."""
    return [word.replace(f"{{{knob}}}", str(value)) for word in words]


def _ledger(
    target: str,
    args: Sequence[str],
    knob: str,
    progress: Progress | None,
    *,
    network: bool = False,
) -> tuple[Ledger | None, tuple[str, ...]]:
    """What a plan says; a plan that fails does not spoil what was measured."""
    say(progress, "planning the same")
    try:
        planned = plan(target, args=args, network=network)
    except MemfitError as error:
        return None, (f"it could not be planned: {error}",)
    if knob not in planned.ledger.knobs:
        return None, (f"the plan has no setting {knob}, so that nothing stands beside the peaks",)
    return planned.ledger, ()


def _failed(output: str) -> Outcome:
    starved = any(text in output for text in _NO_MEMORY)
    return Outcome.OUT_OF_MEMORY if starved else Outcome.FAILED


def _files(words: Sequence[str]) -> dict[str, str]:
    """The content of the small files among some words: a changed script is another sweep."""
    found = {}
    for word in words:
        if os.path.isfile(word) and os.path.getsize(word) < 2**20:  # noqa: PTH113, PTH202 - any text
            found[word] = hashlib.sha256(Path(word).read_bytes()).hexdigest()
    return found
