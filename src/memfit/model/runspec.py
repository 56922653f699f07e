"""RunSpec: the facts of a training run before any byte is counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class ArraySpec:
    """An array that the run holds: its shape may name knobs (`("n_steps", "n_envs", 84, 84)`).

    `name` is its path in the run (`rollout_buffer.observations`); `lazy` says that its pages are
    zeroed by the kernel and become resident only when they are written. The rest is told by run
    specs: what it is, when it is alive, how many of its rows are ever written, and of how many
    separate blocks it consists; in these, and in their shapes, entries may be expressions.
    """

    name: str
    shape: tuple[int | str, ...]
    dtype: str
    itemsize: int
    lazy: bool = True
    kind: str = "buffer"
    phases: tuple[str, ...] = ()
    filled: int | str | None = None
    pieces: int | str = 1


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
    largest_tensor_bytes: int = 0


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
    """A callback that costs memory: evaluation or saving, and how often it comes."""

    kind: str
    every_steps: int = 0
    saves_replay_buffer: bool = False
    n_envs: int = 0


@dataclass(frozen=True, kw_only=True)
class UpdateSpec:
    """How a plain torch run updates; sizes are expressions over its knobs.

    `batch` is what one update learns from, `minibatch` what one step of it takes, `rollout` the
    samples of one rollout step and `steps` how many of these there are.
    """

    batch: int | str
    minibatch: int | str
    rollout: int | str = 0
    steps: int | str = 0
    records_gradients: bool = False
    keeps_last_graph: bool = False


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """One training run: algorithm, knobs, arrays, networks, vector env and callbacks."""

    library: str
    version: str
    algorithm: str
    policy: str
    knobs: Mapping[str, int]
    on_policy: bool
    observation: tuple[ArraySpec, ...] = ()
    arrays: tuple[ArraySpec, ...] = ()
    windows: tuple[WindowSpec, ...] = ()
    networks: tuple[NetworkSpec, ...] = ()
    vec_env: VecEnvSpec | None = None
    callbacks: tuple[CallbackSpec, ...] = ()
    update: UpdateSpec | None = None
    buffer: str = ""
    device: str = "cpu"
    versions: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RunSpec:
        """The spec that `dataclasses.asdict` and JSON took apart."""

        def arrays(name: str) -> tuple[ArraySpec, ...]:
            return tuple(
                ArraySpec(**{**a, "shape": tuple(a["shape"]), "phases": tuple(a["phases"])})
                for a in data[name]
            )

        update = data.get("update")
        vec_env = data["vec_env"]
        if vec_env is not None:
            vec_env = VecEnvSpec(**{**vec_env, "wrappers": tuple(vec_env["wrappers"])})
        return cls(
            **{
                **data,
                "observation": arrays("observation"),
                "arrays": arrays("arrays"),
                "windows": tuple(WindowSpec(**w) for w in data.get("windows", ())),
                "networks": tuple(NetworkSpec(**n) for n in data["networks"]),
                "vec_env": vec_env,
                "callbacks": tuple(CallbackSpec(**c) for c in data["callbacks"]),
                "update": None if update is None else UpdateSpec(**update),
                "notes": tuple(data["notes"]),
            }
        )
