"""Read a run spec (`run.toml`): strict, and with messages that say which key to fix.

The schema is documented in docs/spec.md. What comes out are plain facts, so that the child process
that builds the run needs no pydantic.
"""

from __future__ import annotations

import importlib.util
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
)

from memfit.errors import MissingExtra, SpecError, Unsupported, UsageError
from memfit.sources.spec_checks import (
    FACTORY,
    LARGEST_ARRAY,
    LARGEST_KNOB,
    LIST,
    MODULE,
    NAME,
    TABLE,
    WORD,
    explain,
    own_knobs,
    sb3_problems,
    shown,
    torch_problems,
)
from memfit.units import parse_bytes

SCHEMA = 1
SHIPPED = Path(__file__).parent.parent / "specs"
_DEEPEST = 32

ALGORITHMS = {
    **dict.fromkeys(("PPO", "A2C", "DQN", "SAC", "TD3", "DDPG"), "stable_baselines3"),
    **dict.fromkeys(
        ("RecurrentPPO", "MaskablePPO", "TRPO", "QRDQN", "TQC", "CrossQ"), "sb3_contrib"
    ),
}
_FILE_ONLY = "train_freq"  # the one knob that a plan does not state its formulas over

Knob = Annotated[int, Field(ge=1, le=LARGEST_KNOB)]
Count = Annotated[int, Field(ge=0, le=LARGEST_KNOB)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Axis = Annotated[int, Field(ge=1, le=LARGEST_ARRAY)]
Axes = Annotated[list[Axis], Field(min_length=1, max_length=16)]
Dtype = Literal[
    "float64",
    "float32",
    "float16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
]
Imports = list[Annotated[str, Field(pattern=MODULE)]]
Phase = Literal["build", "rollout", "update"]


def _amount(value: Any) -> Any:
    """`"68.5MiB"` as bytes; what is no amount is left for the schema to refuse."""
    if not isinstance(value, str):
        return value
    try:
        return parse_bytes(value)
    except UsageError as error:
        raise ValueError(str(error)) from None


def _expression(value: Any) -> Any:
    if type(value) not in (int, str):
        raise ValueError(
            f"{shown(value)} is no size: write a whole number or an expression, "
            'such as "agents * steps"'
        )
    return value


def _branch(value: Any) -> str:
    return TABLE if isinstance(value, dict) else LIST


def _parts(value: Any) -> Any:
    """A Dict space has one table a part; one space alone is a part without a name."""
    if not isinstance(value, dict) or (value and all(isinstance(v, dict) for v in value.values())):
        return value
    return {"": value}


Amount = Annotated[Annotated[int, Field(ge=0, le=LARGEST_ARRAY)], BeforeValidator(_amount)]
Expression = Annotated[int | str, BeforeValidator(_expression)]
NetArch = Annotated[
    Annotated[list[Knob], Tag(LIST)] | Annotated[dict[str, list[Knob]], Tag(TABLE)],
    Discriminator(_branch),
]


class Strict(BaseModel):
    """A table of the file: no unknown keys, no values of another type."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Space(Strict):
    """An observation or action space; exactly one of its forms."""

    shape: Axes | None = None
    dtype: Dtype | None = None
    discrete: Knob | None = None
    multidiscrete: Axes | None = None
    multibinary: Knob | None = None
    low: Number | None = None
    high: Number | None = None


class Sb3Knobs(Strict):
    n_envs: Knob = 1
    total_timesteps: Knob
    n_steps: Knob | None = None
    batch_size: Knob | None = None
    n_epochs: Knob | None = None
    buffer_size: Knob | None = None
    learning_starts: Count | None = None
    gradient_steps: Annotated[int, Field(ge=-1, le=LARGEST_KNOB)] | None = None
    train_freq: Knob | None = None


class PolicyOptions(Strict):
    net_arch: NetArch | None = None
    features_dim: Knob | None = None
    n_critics: Knob | None = None
    n_quantiles: Knob | None = None
    lstm_hidden_size: Knob | None = None
    n_lstm_layers: Knob | None = None
    share_features_extractor: bool | None = None
    normalize_images: bool | None = None


class Env(Strict):
    vec: Literal["dummy", "subproc"] = "dummy"
    start_method: Literal["fork", "forkserver", "spawn"] | None = None
    frame_stack: Annotated[int, Field(ge=1, le=1024)] = 1
    normalize: bool = False
    monitor: bool = True
    state_bytes: Amount = 0
    episode_steps: Knob = 200


class Callback(Strict):
    kind: Literal["evaluate", "save"]
    every: Knob
    save_replay_buffer: bool = False
    save_best: bool = False


class RunFile(Strict):
    """What every run spec begins with."""

    schema_: Literal[1] = Field(alias="schema")
    name: str = Field(min_length=1, max_length=100)
    library: str
    imports: Imports = []


class Sb3File(RunFile):
    """A stable-baselines3 run."""

    algorithm: str
    policy: Literal[
        "MlpPolicy",
        "CnnPolicy",
        "MultiInputPolicy",
        "MlpLstmPolicy",
        "CnnLstmPolicy",
        "MultiInputLstmPolicy",
    ]
    optimize_memory_usage: bool = False
    rollout_buffer_class: str = Field(default="", pattern=FACTORY)
    knobs: Sb3Knobs
    policy_kwargs: PolicyOptions = PolicyOptions()
    observation: Annotated[dict[str, Space], BeforeValidator(_parts)] = Field(min_length=1)
    action: Space
    env: Env = Env()
    callback: list[Callback] = []


class LayerFacts(BaseModel):
    """A layer of torch.nn by its name; all other keys are its arguments."""

    model_config = ConfigDict(extra="allow", strict=True)

    type: str
    args: list[Any] = []


class NetworkTable(Strict):
    name: str = Field(pattern=NAME)
    layers: list[LayerFacts] = []
    factory: str = Field(default="", pattern=FACTORY)
    input: list[Expression] = []
    dtype: Dtype = "float32"
    after: str = ""
    target: str = ""
    loss: str = Field(default="sum", pattern=WORD)
    optimizer: str = Field(default="Adam", pattern=WORD)
    rollout: Literal["kept", "dropped", "none"] = "kept"
    copies: Annotated[int, Field(ge=0, le=64)] = 0


class ArrayTable(Strict):
    name: str = Field(pattern=NAME)
    shape: list[Expression] = Field(min_length=1, max_length=16)
    dtype: Dtype = "float32"
    kind: Literal["env state", "buffer", "copies", "scratch"] = "buffer"
    phases: list[Phase] = Field(default=["build", "rollout", "update"], min_length=1)
    filled: Expression | None = None
    pieces: Expression = 1
    place: Literal["main process", "workers", "shared memory"] = "main process"
    evidence: Literal["assumed", "measured", "derived", "probed"] = "assumed"
    where: str = Field(default="", max_length=200)


class Update(Strict):
    batch: Expression
    minibatch: Expression = ""
    rollout: Expression = ""
    steps: Expression = ""
    rollout_records_gradients: bool = False
    keeps_last_graph: bool = False
    joint_loss: bool = False
    threads: Annotated[int, Field(ge=0, le=4096)] = 0


class TorchFile(RunFile):
    """A plain torch run."""

    knobs: dict[str, Knob] = {}
    network: list[NetworkTable] = Field(min_length=1)
    array: list[ArrayTable] = []
    update: Update


class FileKind(NamedTuple):
    """How the runs of a library are described, and what has to be installed to build them."""

    schema: type[RunFile]
    problems: Callable[[Mapping[str, Any]], Iterator[str]]
    module: str
    extra: str


_LIBRARIES = {
    "stable-baselines3": FileKind(Sb3File, sb3_problems, "stable_baselines3", "sb3"),
    "torch": FileKind(TorchFile, torch_problems, "torch", "torch"),
}


def find(path: Path) -> Path:
    """The spec of that name: a file, or one that memfit ships (`drone.toml`)."""
    shipped = SHIPPED / path.name
    try:
        if path.is_file():
            return path
        if path.parent == Path() and shipped.is_file():
            return shipped
    except OSError as error:
        raise _unreadable(path, error) from None
    known = ", ".join(sorted(p.name for p in SHIPPED.glob("*.toml")))
    raise SpecError(f"there is no run spec {path}: name a file, or one that memfit ships ({known})")


def load(path: Path, knobs: Mapping[str, int] | None = None) -> dict[str, Any]:
    """The facts of a run spec, with some of its knobs changed."""
    path = find(path)
    data = _read(path)
    described = _check_head(path, data)
    _change(path, data, knobs or {}, described.schema)
    try:
        facts = described.schema.model_validate(data).model_dump(mode="json", by_alias=True)
    except ValidationError as error:
        raise SpecError(explain(str(path), error, described.schema)) from None
    for problem in described.problems(facts):
        raise SpecError(f"{path}: {problem}")
    facts["module"] = ALGORITHMS.get(facts.get("algorithm", ""), described.module)
    for name in sorted({described.module, facts["module"]}):
        if not _installed(name):
            raise MissingExtra(
                f"{path} needs {name}, which is not installed: "
                f"pip install 'memfit[{described.extra}]'"
            )
    missing = [name for name in facts["imports"] if not _installed(name)]
    facts["imports"] = [name for name in facts["imports"] if name not in missing]
    facts["notes"] = [
        f"{name} is not installed here: what the run's import of it costs is not counted"
        for name in missing
    ]
    return facts


def _read(path: Path) -> dict[str, Any]:
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        _check_plain(data)
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"{path} is not valid TOML: {error}. Fix that line") from None
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from None
    except (ValueError, RecursionError):
        raise SpecError(
            f"{path} has a whole number of more than 64 bits, or more than {_DEEPEST} lists or "
            "tables in each other: write it smaller"
        ) from None
    return data


def _unreadable(path: Path, error: Exception) -> SpecError:
    return SpecError(f"{path} cannot be read: {error}. Name a text file in TOML")


def _check_plain(value: Any, depth: int = 0) -> None:
    """Refuse what is lawful TOML for Python's reader and too much for all that comes after."""
    if depth > _DEEPEST or (isinstance(value, int) and value.bit_length() > 63):
        raise ValueError
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for one in inner:
        _check_plain(one, depth + 1)


def _check_head(path: Path, data: Mapping[str, Any]) -> FileKind:
    schema, library, algorithm = (data.get(name) for name in ("schema", "library", "algorithm"))
    if type(schema) is not int or schema != SCHEMA:
        said = shown(schema) if "schema" in data else "missing"
        raise SpecError(
            f"{path}: schema is {said}, and this memfit reads schema {SCHEMA}: "
            f"write schema = {SCHEMA} as the first line"
        )
    described = _LIBRARIES.get(library) if isinstance(library, str) else None
    if described is None:
        said = f"{shown(library)}, which memfit does not know" if "library" in data else "missing"
        raise Unsupported(f"{path}: library is {said}: use one of {', '.join(_LIBRARIES)}")
    known = ALGORITHMS if _has_algorithm(described.schema) else (algorithm,)
    if isinstance(algorithm, str) and algorithm not in known:
        raise Unsupported(
            f"{path}: algorithm is {shown(algorithm)}, which memfit does not know: "
            f"use one of {', '.join(ALGORITHMS)}"
        )
    return described


def _has_algorithm(schema: type[RunFile]) -> bool:
    """Whether these runs are named by an algorithm, which has settings of its own."""
    return "algorithm" in schema.model_fields


def _change(
    path: Path, data: dict[str, Any], knobs: Mapping[str, int], schema: type[RunFile]
) -> None:
    known, algorithm = data.get("knobs", {}), data.get("algorithm")
    if not isinstance(known, dict):
        return  # the schema says what is wrong
    own = set(known)
    if _has_algorithm(schema):
        if not isinstance(algorithm, str):
            return
        own = {"n_envs", "total_timesteps", *own_knobs(algorithm)}
        if _FILE_ONLY in own & set(knobs):
            raise UsageError(f"{path}: --set cannot change {_FILE_ONLY}: change it in the file")
        own.discard(_FILE_ONLY)
    if unknown := sorted(set(knobs) - own):
        todo = f"use one of {', '.join(sorted(own))}" if own else "name it in its [knobs]"
        raise UsageError(f"{path} has no setting {', '.join(unknown)}: {todo}")
    data["knobs"] = {**known, **knobs}


def _installed(name: str) -> bool:
    """Whether a module's package is there; nothing of it is imported here."""
    try:
        return importlib.util.find_spec(name.partition(".")[0]) is not None
    except ValueError:  # a module that is loaded already, and from no file: `__main__`
        return True
