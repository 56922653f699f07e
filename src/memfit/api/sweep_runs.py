"""The ways to run something at one value of a setting: a command, or a target in a child."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from memfit.api.plan import Progress, error_of, job_of, plan, say
from memfit.errors import MemfitError, NeverLearned, UsageError
from memfit.model import Ledger, Outcome, Point

UPDATES = 2
_REHEARSAL_SECONDS = 20.0
_NO_MEMORY = ("MemoryError", "can't allocate memory", "Cannot allocate memory", "bad_alloc")
_KILLED = -9
_SPEC = ".toml"


class Runner(Protocol):
    """Runs something at a value, and may know what a plan says of it."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """All that its figures depend on."""

    def run(
        self, value: int, *, memory: int, timeout: float, alive: Callable[[int], None]
    ) -> Point:
        """One run, to its end or to a limit."""

    def plan(self, progress: Progress | None) -> tuple[Ledger | None, tuple[str, ...]]:
        """The planned ledger, if it has the setting, and what to say of the figures."""


def runner_of(
    target: str | Path | None, command: Sequence[str], knob: str, values: Sequence[int]
) -> Runner:
    """Tell by what was given what is to be run."""
    is_spec = target is not None and Path(target).suffix == _SPEC
    if target is not None and not (is_spec and command):
        return _Target(str(target), tuple(command), knob, values[0])
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
        return {"command": self.command, "in": str(Path.cwd()), **_files(self.command)}

    def run(
        self, value: int, *, memory: int, timeout: float, alive: Callable[[int], None]
    ) -> Point:
        from memfit.measure.children.measured_command import measure

        hole = f"{{{self.knob}}}"
        words = [word.replace(hole, str(value)) for word in self.command]
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
            outcome=outcome,
            seconds=done.seconds,
            exit_code=done.exit_code,
            said=done.output,
        )

    def plan(self, progress: Progress | None) -> tuple[Ledger | None, tuple[str, ...]]:
        return _ledger(self.spec, (), self.knob, progress) if self.spec else (None, ())


@dataclass(frozen=True)
class _Target:
    """A script, a spec or a factory, which learns in a child that cannot take anybody down."""

    target: str
    args: tuple[str, ...]
    knob: str
    smallest: int

    @property
    def facts(self) -> Mapping[str, Any]:
        here = {"target": self.target, "args": self.args, "in": str(Path.cwd())}
        return {**here, **_files((self.target, *self.args))}

    def _job(self, value: int) -> dict[str, Any]:
        hole = f"{{{self.knob}}}"
        args = [word.replace(hole, str(value)) for word in self.args]
        by_script = any(hole in word for word in self.args)
        job = job_of(self.target, args, None if by_script else {self.knob: value})
        if job["kind"] != "spec" and not by_script:
            job["knobs"] = {self.knob: value}
        return {**job, "observe": UPDATES, "seconds": _REHEARSAL_SECONDS}

    def run(
        self, value: int, *, memory: int, timeout: float, alive: Callable[[int], None]
    ) -> Point:
        from memfit.measure.children import sandbox

        job = self._job(value)
        try:
            answer = sandbox.run(job, timeout=timeout, memory=memory, alive=alive)
        except NeverLearned as late:
            return Point(
                value=value,
                peak_bytes=0,
                outcome=Outcome.TIMED_OUT,
                seconds=timeout,
                said=late.output,
            )
        status, fields = answer.fields["status"], answer.fields
        peaks = [answer.peak_bytes, *fields.get("peaks", {}).values()]
        outcome = Outcome.DONE
        if status == "no setting":
            raise UsageError(self._lacking(fields["known"]))
        if status == "over limit" or fields.get("code") == _KILLED:
            outcome = Outcome.OUT_OF_MEMORY
        elif status not in ("observed", "surveyed"):
            outcome = _failed(f"{answer.output}\n{fields.get('output', '')}")
            if outcome is Outcome.FAILED and value == self.smallest:
                raise error_of(status, fields, answer.output, self.target)
        said = fields.get("output", "") or answer.output
        return Point(
            value=value,
            peak_bytes=max(peaks),
            outcome=outcome,
            seconds=answer.seconds,
            exit_code=fields.get("code"),
            said=said,
        )

    def _lacking(self, known: Sequence[str]) -> str:
        own = f"{self.target} -- --{self.knob} {{{self.knob}}}"
        return (
            f"{self.knob} of {self.target} cannot be changed from outside (what can: "
            f"{', '.join(known)}): let the script take it as an argument, as in: memfit sweep "
            f"--over {self.knob}={self.smallest},{2 * self.smallest} {own}"
        )

    def plan(self, progress: Progress | None) -> tuple[Ledger | None, tuple[str, ...]]:
        hole = f"{{{self.knob}}}"
        args = [word.replace(hole, str(self.smallest)) for word in self.args]
        return _ledger(self.target, args, self.knob, progress)


def _ledger(
    target: str, args: Sequence[str], knob: str, progress: Progress | None
) -> tuple[Ledger | None, tuple[str, ...]]:
    """What a plan says; a plan that fails does not spoil what was measured."""
    say(progress, "planning the same")
    try:
        planned = plan(target, args=args)
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
