"""What memfit asks of a child process that runs a target, and what the child answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from memfit.model.after_learn import AfterReading
from memfit.model.changes import Changes
from memfit.model.confinement import Confinement
from memfit.model.profile import Stepped, Stepping
from memfit.model.reading import Readings, Rehearsed
from memfit.model.runspec import RunSpec
from memfit.model.trial import Progress


class TargetKind(StrEnum):
    """What a target is."""

    SCRIPT = "script"
    MODULE = "module"
    NOTEBOOK = "notebook"
    FACTORY = "factory"
    SPEC = "spec"
    OBJECT = "object"
    ENV = "env"


PROGRAMS = (TargetKind.SCRIPT, TargetKind.MODULE, TargetKind.NOTEBOOK)


class Look(StrEnum):
    """How the child looks at a training that is about to begin."""

    SURVEY = "survey"  # small updates, from which the rest is derived
    REHEARSE = "rehearse"  # a few iterations at the sizes of `scales`
    OBSERVE = "observe"  # it trains for a few updates; else it is rehearsed at its own size
    TRAIN = "train"  # it trains as it is for a number of updates, and tells its parameters' digest
    STEP = "step"  # an environment is stepped, as `stepping` says
    AFTER = "after"  # every training is passed over, and the rest of the script runs for a while


@dataclass(frozen=True, kw_only=True)
class Job:
    """One target, and how to look at it.

    `spec` are the facts of a run spec, `pickled` is a live object. `knobs` are settings that the
    run gets in place of its own. `skip` is how many trainings to pass over. `scales` are knob
    values, smallest first; `seconds` is how long a rehearsal, or the rest of a script, goes on;
    `updates` is how many are observed; a run that trains as it is ends after so many, or, with 0,
    after its second cycle of collecting and updating. `changes` are made to it. `network` says that
    the target may use it. A loop of no known library is tried for at most `trial_seconds`, or
    `trial_latest` with what it waited for a processor, and `trial_bytes`; `real_env` says that its
    env is always stepped, `short` that one cycle of it will do. With `rewrite`, a script gets the
    values of `knobs` where it says its own. With `device`, it is planned for a card. A launcher
    would start `ranks` of it, 0 where there is none.
    """

    kind: TargetKind
    target: str
    args: tuple[str, ...] = ()
    spec: Mapping[str, Any] = field(default_factory=dict)
    pickled: str = ""
    notes: tuple[str, ...] = ()
    look: Look = Look.SURVEY
    knobs: Mapping[str, int] = field(default_factory=dict)
    skip: int = 0
    scales: tuple[Mapping[str, int], ...] = ()
    seconds: float = 0.0
    updates: int = 0
    changes: Changes = field(default_factory=Changes)
    network: bool = False
    real_env: bool = False
    rewrite: bool = False
    short: bool = False
    device: bool = False
    ranks: int = 0
    trial_seconds: float = 60.0
    trial_latest: float = 0.0
    trial_bytes: int = 0
    stepping: Stepping | None = None


class Status(StrEnum):
    """How a child's look at a target ended."""

    SURVEYED = "surveyed"
    REHEARSED = "rehearsed"
    OBSERVED = "observed"
    TRAINED = "trained"
    RAN_ON = "ran on"
    STEPPED = "stepped"
    NEVER_LEARNED = "never learned"
    NO_SETTING = "no setting"
    BAD_SPEC = "bad spec"
    UNSUPPORTED = "unsupported"
    MISSING_EXTRA = "missing extra"
    TARGET_FAILED = "target failed"
    SURVEY_FAILED = "survey failed"
    TIMED_OUT = "timed out"
    OVER_LIMIT = "over limit"
    DIED = "died"


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A run that trained as it is: how many updates in how many seconds, and what it became.

    `digest` is of all parameters after the last of these updates, "" where none could be read.
    `cycles` are the times that it collected and updated; `filled` says that a replay buffer was
    then filled as far as the run will fill it.
    """

    updates: int
    cycles: int
    seconds: float
    busy_seconds: float
    digest: str
    filled: bool = False


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a child found out, or why it could not.

    `again` says that a training goes on with what an earlier one, that was passed over, had;
    `earlier_alive` that an earlier one's objects are still there. `peaks` are phases and `rows`
    the resident bytes of components of a run that was observed; `after` is what followed learn().
    `progress` is how far a script came that did not learn.
    `imports` are the bytes that modules added, by the import that the run's own code asked for,
    `files` the pages of mapped files that each module added, `mapped` all of them at the look.
    """

    status: Status
    spec: RunSpec | None = None
    readings: Readings | None = None
    rehearsed: tuple[Rehearsed, ...] = ()
    peaks: Mapping[str, int] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)
    after: AfterReading | None = None
    imports: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    files: Mapping[str, int] = field(default_factory=dict)
    mapped: int = 0
    again: bool = False
    earlier_alive: bool = False
    reason: str = ""
    output: str = ""
    library: str = ""
    extra: str = ""
    settings: tuple[str, ...] = ()
    exit_code: int | None = None
    progress: Progress | None = None
    confinement: Confinement | None = None
    stepped: Stepped | None = None
    trained: Trained | None = None
