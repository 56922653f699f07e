"""Real runs of a target in children, as it is and with fixes: peaks, times and parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import mean, median

from memfit.api.child_errors import error_of
from memfit.api.loop_trials import is_loop
from memfit.api.optimize_places import Here, Place
from memfit.api.surveyed import imports_for
from memfit.measure.children import sandbox
from memfit.measure.children.import_cost import import_cost
from memfit.measure.survey.rehearsal import SECONDS
from memfit.model import Changes
from memfit.model.confinement import Confinement
from memfit.model.job import Answer, Job, Look, Status, Trained
from memfit.units import format_bytes

REPEATS = 3  # of one change, and so many unchanged ones, where runs differ
_SHARE = 0.4  # of the time that a run may take, after which it has trained enough
_LACKS_TRAINING = (Status.NEVER_LEARNED, Status.TIMED_OUT)


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run: its peak without memfit's own part, what it trained, or why there is neither."""

    peak_bytes: int | None = None
    trained: Trained | None = None
    failed: str = ""


@dataclass(kw_only=True)
class Runs:
    """All runs of one target; the first says for how many updates the others train.

    A target that makes no update in its time, or that is only described, is rehearsed at its own
    size instead, by parts of its own code, and has no parameters to compare.
    """

    job: Job
    timeout: float
    place: Place = field(default_factory=Here)
    repeats: int = REPEATS
    updates: int = 0
    count: int = 0
    rehearsed: bool = False
    unchanged: list[Run] = field(default_factory=list)
    confinement: Confinement | None = None
    notes: dict[str, None] = field(default_factory=dict)
    _own: int = -1

    def run(self, changes: Changes, knobs: Mapping[str, int] = {}) -> Run:
        """The target with these changes, and other values of its settings."""
        ended = self._ended(changes, knobs)
        answer = ended.answer
        if answer.status in _LACKS_TRAINING and not self.rehearsed and not self.updates:
            self.rehearsed = True
            ended = self._ended(changes, knobs)
            answer = ended.answer
        self.confinement = self.confinement or answer.confinement
        self.notes |= dict.fromkeys(ended.notes)
        trained = answer.trained
        if answer.status not in (Status.TRAINED, Status.REHEARSED):
            if not self.unchanged and answer.status is not Status.OVER_LIMIT:
                raise error_of(ended, self.job.target)
            return Run(failed=self._why(ended))
        if trained is not None and not self.updates:
            self.updates = trained.updates
        return Run(peak_bytes=max(0, ended.peak_bytes - self.own), trained=trained)

    def run_unchanged(self) -> Run:
        """The target as it is; a first run that fails is the target's own error."""
        found = self.run(Changes())
        self.unchanged.append(found)
        return found

    def _ended(self, changes: Changes, knobs: Mapping[str, int]) -> sandbox.Ended:
        self.count += 1
        return self.place.run(self._job(changes, knobs), self.timeout)

    def ahead(self, changes: Sequence[Changes]) -> None:
        """Say which runs will be asked for, where several can be made at once."""
        self.place.ahead([self._job(each, {}) for each in changes], self.timeout)

    def _job(self, changes: Changes, knobs: Mapping[str, int]) -> Job:
        asked = {**self.job.knobs, **changes.knobs, **knobs}
        return replace(
            self.job,
            look=Look.REHEARSE if self.rehearsed else Look.TRAIN,
            updates=self.updates,
            seconds=SECONDS if self.rehearsed else _SHARE * self.timeout,
            changes=replace(changes, knobs={}),
            knobs=asked,
            rewrite=bool(asked) and is_loop(self.job),
        )

    @property
    def own(self) -> int:
        """What memfit's own modules take in such a child."""
        if self._own < 0:
            self._own = import_cost(imports_for(self.job)).own
        return self._own

    def _why(self, ended: sandbox.Ended) -> str:
        answer = ended.answer
        match answer.status:
            case Status.OVER_LIMIT:
                most = format_bytes(self.place.memory)
                return f"it takes more than the {most} that it may take here"
            case Status.TIMED_OUT:
                return f"it was not done within {self.timeout:.0f} s: give more with --timeout"
            case Status.NO_SETTING:
                return "the target makes this part in a way that cannot be changed from outside"
        return f"the run failed with it: {_last_line(answer, ended.output)}"

    # -- what the unchanged runs say -------------------------------------------------------------

    @property
    def peak_bytes(self) -> int | None:
        """The peak of the unchanged run, the middle one of several."""
        peaks = [run.peak_bytes for run in self.unchanged if run.peak_bytes is not None]
        return round(median(peaks)) if peaks else None

    @property
    def differs_by(self) -> int:
        """By how much the peaks of unchanged runs differ."""
        peaks = [run.peak_bytes for run in self.unchanged if run.peak_bytes is not None]
        return max(peaks) - min(peaks) if peaks else 0

    @property
    def digests(self) -> list[str]:
        return [run.trained.digest for run in self.unchanged if run.trained is not None]

    @property
    def repeatable(self) -> bool | None:
        """Whether unchanged runs end with the same parameters; None where that is not known."""
        known = self.digests
        return None if len(known) < 2 or "" in known else len(set(known)) == 1

    def identical(self, run: Run) -> bool | None:
        """Whether a run ended with the parameters of the unchanged one, where that can be told."""
        if run.trained is None or not self.repeatable or not run.trained.digest:
            return None
        if run.trained.updates != self.updates:
            return None
        return run.trained.digest == self.digests[0]

    def time_ratio(self, run: Run, before: int) -> float | None:
        """The time of a run beside that of the unchanged ones right before and after it."""
        beside = [_seconds(one) for one in self.unchanged[before - 1 : before + 1]]
        known = [seconds for seconds in beside if seconds]
        if not known or run.trained is None or run.trained.updates != self.updates:
            return None
        return run.trained.seconds / mean(known)

    @property
    def time_noise(self) -> float | None:
        """By how much the unchanged runs' times differ: half their range, as a share."""
        known = [seconds for seconds in map(_seconds, self.unchanged) if seconds]
        if len(known) < 2:
            return None
        return (max(known) - min(known)) / 2 / mean(known)


def _seconds(run: Run) -> float:
    return run.trained.seconds if run.trained is not None else 0.0


def _last_line(answer: Answer, output: str) -> str:
    said = (answer.output or answer.reason or output or answer.status).strip().splitlines()
    return said[-1].strip()[:300] if said else str(answer.status)
