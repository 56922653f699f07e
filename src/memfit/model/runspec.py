"""RunSpec: the facts of a training run before any byte is counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from memfit.model.evidence import EvidenceKind
from memfit.model.ledger import Place


@dataclass(frozen=True, kw_only=True)
class ArraySpec:
    """An array that the run holds: its shape may name knobs (`("n_steps", "n_envs", 84, 84)`).

    `name` is its path in the run (`rollout_buffer.observations`); `kind` says what it is, `phases`
    when it is alive, `filled` how many of its rows are ever written, `pieces` of how many separate
    blocks it consists. These, and entries of the shape, may be expressions over the run's knobs.
    In the moment `copied_in` it is copied as a whole, and the first copy goes; an array that is
    alive in that moment alone stands for such copies. `mapped` says that it has mappings of its
    own, which are filled and stay. `evidence` and `where` are what says so.
    """

    name: str
    shape: tuple[int | str, ...]
    dtype: str
    itemsize: int
    kind: str = "buffer"
    phases: tuple[str, ...] = ()
    filled: int | str | None = None
    pieces: int | str = 1
    copied_in: str = ""
    mapped: bool = False
    place: Place = Place.MAIN
    on_card: bool = False  # where the run trains on a card, the library makes it there
    evidence: EvidenceKind = EvidenceKind.DERIVED
    where: str = ""


@dataclass(frozen=True, kw_only=True)
class WindowSpec:
    """A part of a run's observations that memfit's own buffers store once for all windows of it.

    A window has `length` rows of `row_bytes`, of which each step brings `new` ones. What is no
    window is one row.
    """

    name: str
    length: int
    new: int
    row_bytes: int


@dataclass(frozen=True, kw_only=True)
class NetworkSpec:
    """A network's parameters, what of them is trained, and what its optimizer keeps, in bytes."""

    name: str
    parameter_bytes: int
    gradient_bytes: int
    optimizer: str = ""
    optimizer_bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class VecEnvSpec:
    """How environments are run side by side.

    `stack` is how many frames a wrapper puts into each observation, the newest beside older ones.
    """

    kind: str
    wrappers: tuple[str, ...] = ()
    start_method: str = ""
    stack: int = 1


@dataclass(frozen=True, kw_only=True)
class CallbackSpec:
    """A callback that costs memory: evaluation or saving, and how often it comes.

    `divided` says that the frequency was divided where it is made, as by the number of envs.
    """

    kind: str
    every_steps: int = 0
    divided: bool = False
    saves_replay_buffer: bool = False
    n_envs: int = 0


@dataclass(frozen=True, kw_only=True)
class UpdateSpec:
    """How a run updates; sizes are expressions over its knobs.

    `batch` is what one update learns from, `minibatch` what goes through the networks at once.
    `rollout` are the samples of one step of a rollout that goes through the networks, `steps` how
    many of these there are; `iterations` is how often the run collects and updates, 0 where that
    is without end. `moment` is the moment in which minibatches are alive.
    """

    batch: int | str = 1
    minibatch: int | str = 1
    rollout: int | str = 0
    steps: int | str = 0
    iterations: int | str = 0
    records_gradients: bool = False
    keeps_last_graph: bool = False
    moment: str = "update"


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """One training run: algorithm, knobs, arrays, networks, vector env and callbacks.

    `settings` are those that the program itself has and can be built with, in formulas or not.
    `scale` are the knobs by which the run is made smaller or larger as a whole, at its own size.
    `length` is the knob that says after how many environment steps it ends, `first_update` after
    how many of them updates begin. `learns_again` says that the script goes on to learn after that.
    """

    library: str
    version: str
    algorithm: str
    policy: str
    knobs: Mapping[str, int]
    on_policy: bool
    settings: Mapping[str, int] = field(default_factory=dict)
    observation: tuple[ArraySpec, ...] = ()
    arrays: tuple[ArraySpec, ...] = ()
    windows: tuple[WindowSpec, ...] = ()
    networks: tuple[NetworkSpec, ...] = ()
    vec_env: VecEnvSpec | None = None
    callbacks: tuple[CallbackSpec, ...] = ()
    update: UpdateSpec = UpdateSpec()
    scale: Mapping[str, int] = field(default_factory=dict)
    length: str = ""
    first_update: int | str = 0
    learns_again: bool = False
    buffer: str = ""
    device: str = "cpu"
    built_alike: tuple[str, ...] = ()
    built_alike_bytes: int = 0
    notes: tuple[str, ...] = ()
