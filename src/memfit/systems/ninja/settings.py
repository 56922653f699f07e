"""The settings of the ninja system, and what makes them impossible."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Literal, Self

from memfit.errors import UsageError
from memfit.systems.options import check, option

Graphs = Literal["none", "arrays", "number"]
Entities = Literal["nearest", "all"]


@dataclass(frozen=True, kw_only=True)
class Memory:
    """The changes that make an environment fit. With all of them off it is as described."""

    views: bool = False  # pixels are looked at in place; no copy of the last observation is kept
    reuse: bool = False  # the arrays of an observation are written again at the next step
    one_grey: bool = False  # one grey conversion an observation, not one for each of its pictures
    one_stabilisation: bool = False
    patches: bool = False  # only what an observation shows is drawn, and in grey
    float32_state: bool = False
    shared_levels: bool = False
    shared_graphs: bool = False
    lazy_graphs: bool = False
    sparse_entities: bool = False
    shared_spaces: bool = False
    no_animation: bool = False

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """All changes."""
        return tuple(one.name for one in fields(cls))

    @classmethod
    def only(cls, *names: str) -> Self:
        """As described but for these changes."""
        unknown = set(names) - set(cls.names())
        if unknown:
            raise UsageError(
                f"there is no change {min(unknown)!r}: give some of {', '.join(cls.names())}"
            )
        return cls(**dict.fromkeys(names, True))

    @classmethod
    def fitted(cls, *, reuse: bool = False) -> Self:
        """Every change. Arrays are reused only where it is said that the consumer copies."""
        return replace(cls.only(*cls.names()), reuse=reuse)


@dataclass(frozen=True, kw_only=True)
class EnvironmentConfig:
    """One environment: its levels, what it observes, and how it keeps memory."""

    levels: tuple[str, ...] = ("first-steps",)
    graphs: Graphs = option("none", known=("none", "arrays", "number"))
    entities: Entities = option("nearest", "mines that are observed", known=("nearest", "all"))
    reachability: bool = True
    max_steps: int = option(300, "steps of an episode at most", least=1)
    memory: Memory = field(default_factory=Memory.fitted)

    def __post_init__(self) -> None:
        if not self.levels:
            raise UsageError("there is no level: give at least one")
        check(self)

    @classmethod
    def for_training(cls, **changes: object) -> Self:
        """Made to fit, and safe for every consumer: each step gives arrays of its own."""
        return replace(cls(), **changes)  # type: ignore[arg-type]

    @classmethod
    def for_parallel_training(cls, **changes: object) -> Self:
        """Made to fit, for consumers that copy what they get, as stable-baselines3 does.

        The arrays of an observation are written again at the next step of the same episode.
        """
        return replace(cls(memory=Memory.fitted(reuse=True)), **changes)  # type: ignore[arg-type]

    @classmethod
    def as_described(cls, **changes: object) -> Self:
        """With all the waste of the assessment."""
        return replace(cls(memory=Memory()), **changes)  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """One training: its environments, and how PPO learns from them."""

    env: EnvironmentConfig = field(default_factory=EnvironmentConfig.for_parallel_training)
    n_envs: int = option(8, "environments side by side; 1 to profile", least=1, metavar="E")
    steps: int = option(50_000, "steps of all environments", least=1, metavar="N")
    n_steps: int = option(64, "steps of a rollout, of each one", least=1)
    batch_size: int = option(64, "samples of a minibatch", least=1)
    epochs: int = option(4, "passes over each rollout", least=1)
    learning_rate: float = option(5e-4, "of Adam", above=0, below=1)
    storage: str = option(
        "windows",
        "the rollout as memfit.dropins.WindowRolloutBuffer, or as the library's own",
        known=("windows", "library"),
    )
    seed: int = option(0, "of everything that is drawn at random", least=0, below=2**32)
    device: str = "cpu"
    start_method: str | None = option(
        None,
        "a process for each environment, and how it is started; else all are in this one",
        flag="workers",
        choices=("fork", "forkserver", "spawn"),
    )

    def __post_init__(self) -> None:
        check(self)
        if self.batch_size < 2:
            raise UsageError("a minibatch of 1 has no spread to normalise by: raise --batch-size")
        if self.n_envs * self.n_steps < 2:
            raise UsageError("a rollout of 1 sample is too little: raise --n-envs or --n-steps")
