"""The seam for RL libraries: what a library's file tells memfit, and what memfit can do with it.

`Library` is made in memfit's own process and in the child that runs a target; it imports nothing
heavy. `Training` lives in the child only, around a run's live objects. A training is measured in
one of three ways: a `Driven` one does a part of its own work at sizes of memfit's choice; an
`Observed` one runs on as it is, and says which of its calls are which phase; of a `Looping` one no
library is known, and what it does is told as it happens.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, runtime_checkable

from memfit.model.changes import Changes
from memfit.model.job import Job
from memfit.model.ledger import Component
from memfit.model.reading import ProcessNames, Readings
from memfit.model.runspec import RunSpec
from memfit.model.trial import TrialArrays, TrialReading

ModuleHook = Callable[[ModuleType], None]
Mark = Callable[[str], None]

FORWARD_DONE = "forward done"  # what a driven update notes between its allocations
FEW_STEPS = 4


class SkipTraining(Exception):
    """Raised where a training that would begin is to be passed over."""


@dataclass(frozen=True, kw_only=True)
class HeldArray:
    """An array of the run: its bytes, of how many blocks it is made, and when it is alive.

    In the moment `copied_in` it is copied as a whole, and the first copy goes.
    """

    name: str
    bytes: int
    pieces: int = 1
    phases: tuple[str, ...] = ("update",)
    copied_in: str = ""


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How large a run is at some knob values.

    `unit` is the number of samples by which the run is said to grow, `width` how many go through
    its networks at once, `rest` how many in an epoch's last minibatch where these are fewer.
    `collected` are the samples of one step of a rollout that goes through the networks, `steps` how
    many of these there are. `iterations` is how often it collects and updates, 0 where that is
    without end. The others are as in `UpdateSpec`.
    """

    unit: int
    width: int
    rest: int = 0
    minibatches: int = 1
    collects: bool = False
    collected: int = 0
    steps: int = 0
    iterations: int = 0
    records_gradients: bool = False
    keeps_last_graph: bool = False
    moment: str = "update"
    arrays: tuple[HeldArray, ...] = ()

    @property
    def telling_steps(self) -> int:
        """How many steps of a rollout tell all of it: a few, where nothing of them is kept."""
        return self.steps if self.records_gradients else min(self.steps, FEW_STEPS)


@dataclass(frozen=True, kw_only=True)
class Work:
    """How much of its own work a driven training does at once.

    `batch` samples go through the networks at once, in at most `minibatches` of each of `epochs`.
    A `rehearsal` has the run's buffers in full, at the sizes of `knobs`; else they are as small as
    the batch allows. The env is stepped for at most `env_steps` and `env_seconds`, and what it
    gave is repeated. No minibatch begins after the `deadline`, a time of `time.perf_counter`.
    """

    batch: int
    knobs: Mapping[str, int]
    rehearsal: bool = False
    minibatches: int = 2
    epochs: int = 1
    env_steps: int = 8
    env_seconds: float = 0.25
    deadline: float = float("inf")


@dataclass(frozen=True, kw_only=True)
class Beside:
    """What stands around a training and costs memory.

    `make_env` builds and resets one more env. `workers` are processes that run envs; where they
    run several each, `worker_envs` is how many they run together, else 0. `evaluate(steps,
    seconds)` steps
    the evaluation env. `save(folder, replay)` writes a checkpoint there and removes it, with the
    replay buffer where asked for; `saves_replay` says that the run asks for it.
    """

    make_env: Callable[[], object] | None = None
    workers: tuple[int, ...] = ()
    worker_envs: int = 0
    evaluate: Callable[[int, float], None] | None = None
    save: Callable[[Path, bool], None] | None = None
    saves_replay: bool = False


class Training(Protocol):
    """A run's live objects in the child, where it is about to begin to learn."""

    @abstractmethod
    def facts(self) -> RunSpec:
        """The run as it is now: optimizers have their state after a first update."""

    def settings(self) -> Mapping[str, int]:
        """The knobs that can be changed from outside, with the values that the run has."""
        return {}

    def lacks(self, changes: Changes) -> Sequence[str]:
        """Which of these changes to its parts and options the run does not have after all."""
        return [*changes.parts, *changes.options]

    def hasten(self) -> None:
        """Let a first update come soon, where the run would only collect for long until then."""
        return

    def fill(self) -> bool:
        """Fill what the run will fill until its end, and update once more, if there is such."""
        return False

    def identity(self) -> object:
        """The object that a later training of the same run would have too."""
        return self

    def beside(self) -> Beside:
        """Envs, workers, evaluation and saving."""
        return Beside()


@runtime_checkable
class Driven(Training, Protocol):
    """A training that does a part of its own work at sizes of memfit's choice."""

    running_its_own: bool = False  # the run's own code is at work: an exception now is the run's
    follows_episodes: bool = False  # an update holds more or less, by how long episodes are
    recorded_samples: int = 0  # the samples at which an update has to be recorded; 0: any will do

    @abstractmethod
    def sizes(self, knobs: Mapping[str, int]) -> Sizes:
        """How large the run is at these knobs."""

    def prepare(self) -> None:
        """Do what the run does where it begins to learn, and what its facts depend on."""
        return

    def samples_of(self, work: Work) -> int:
        """How many samples really go through the networks at once in this much work."""
        return work.batch

    def collect(self, work: Work) -> None:
        """Fill what an update learns from."""
        return

    @abstractmethod
    def update(self, work: Work, mark: Mark) -> None:
        """One update by the run's own code; `mark` is told what it does meanwhile."""

    def rollout_step(self, samples: int) -> object:
        """One step of a rollout through the networks; returned is what a run keeps of it."""
        return None

    @abstractmethod
    def forward(self, samples: int) -> object:
        """The forward pass that an update differentiates, on data of no meaning."""

    def padding(self, recorded: int, samples: int) -> float:
        """How much more the run pads minibatches of so many samples than the recorded ones."""
        return 1.0

    @abstractmethod
    def tensors(self) -> Iterable[Any]:
        """What the networks and their optimizers hold from one update to the next."""

    def drop_gradients(self) -> None:
        """Release every gradient and what the last update left, as the run's next would."""
        for tensor in self.tensors():
            tensor.grad = None


@runtime_checkable
class Observed(Training, Protocol):
    """A training that runs on as it is while it is watched."""

    @abstractmethod
    def marks(self) -> Iterable[tuple[Any, str, str]]:
        """Objects, the names of their methods, and the phase that each call is."""

    @abstractmethod
    def arrays(self) -> Mapping[str, Iterable[Any]]:
        """The arrays and tensors of the run, by the names of their rows."""


class LoopListener(Protocol):
    """Who is told what a training loop does while it runs on."""

    @abstractmethod
    def stepped(self, env: object, steps: int) -> None:
        """An env, or several at once, made so many steps together."""

    @abstractmethod
    def updated(self) -> None:
        """An optimizer has made a step."""

    @abstractmethod
    def works_on(self, running: Callable[[], bool]) -> None:
        """The update that was told is of a compiled program, and may be `running`."""

    def started_process(self) -> None:
        """The script has started processes of its own, and asks for what they give."""
        return

    def waits_for(self, running: Callable[[], bool]) -> None:
        """The script waits until a process of its own ends, which is still `running`."""
        return

    @abstractmethod
    def compiled(self) -> None:
        """A program has been compiled."""

    @abstractmethod
    def goes_on(self) -> None:
        """The script does something, and has nothing that could update."""

    @abstractmethod
    def due(self, place: str, *, now: bool) -> bool:
        """Whether what a place of the program does every so often is done `now`, or is to be."""

    @abstractmethod
    def saving(self) -> None:
        """A checkpoint begins to be written."""

    @abstractmethod
    def saved(self) -> None:
        """It has been written."""


@runtime_checkable
class Looping(Training, Protocol):
    """A training of no known library: it runs on as it is, and a listener is told what it does.

    Its facts are known at the end, from what its variables held.
    """

    @abstractmethod
    def listen(self, listener: LoopListener) -> None:
        """Tell this one from now on."""

    @abstractmethod
    def dismiss(self) -> None:
        """Tell nobody any more."""

    @abstractmethod
    def observed(
        self,
        trial: TrialReading,
        held: Mapping[str, Sequence[TrialArrays]],
        variables: Iterable[tuple[str, Any]],
    ) -> LoopFacts:
        """The run's facts, from the arrays that were held in each phase, and its variables."""

    def processes(self) -> ProcessNames:
        """How processes that it starts are named."""
        return ProcessNames()


@dataclass(frozen=True, kw_only=True)
class LoopFacts:
    """What a loop says of itself after a trial: its facts, and rows' bytes."""

    spec: RunSpec
    trial: TrialReading


class Stop(Protocol):
    """What a library's hooks call where a training is about to begin."""

    def __call__(self, training: Training) -> Any:
        """Look at it. Returns only where the training is to go on, raises SkipTraining to skip."""


class Library(Protocol):
    """What memfit knows about one RL library."""

    name: str
    extra: str  # of memfit's extras, the one that brings it
    packages: tuple[str, ...]  # what that extra brings: a program that imports these may train so
    imports: tuple[str, ...]  # what a run's process imports before it does anything
    begins: str  # the call with which a script begins to train, for messages; "" where none does
    roles: Mapping[str, str]  # `package.Class` -> what it is in a training, for the inside view

    def hooks(self, stop: Stop, job: Job) -> Iterable[Mapping[str, ModuleHook]]:
        """By module, what to change in it when it is imported, so that `stop` is called."""

    def owns(self, made: Any) -> bool:
        """Whether this is the library's, by the names of its types, importing nothing."""

    def begin(self, made: Any, stop: Stop) -> None:
        """Let what a factory made begin to learn."""

    def build(self, facts: Mapping[str, Any], scratch: Path, stop: Stop) -> None:
        """Build the run that a spec describes, and let it begin to learn."""

    def rows(self, spec: RunSpec, readings: Readings) -> Iterator[Component]:
        """The rows of a run's ledger."""


def no_mark(word: str) -> None:
    """Note nothing: a `Mark` for updates that nobody records."""
