"""Facts of a run, read off a live model of stable-baselines3."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from memfit.formulas import dropin_arrays
from memfit.formulas.array_bytes import fixed_bytes
from memfit.formulas.shared_rows import TRAINING
from memfit.libraries.driven import networks_of, tensors_of, version_of
from memfit.libraries.sb3.callback_frequency import is_divided
from memfit.model import (
    ArraySpec,
    CallbackSpec,
    NetworkSpec,
    Place,
    RunSpec,
    UpdateSpec,
    VecEnvSpec,
    WindowSpec,
)

NAME = "stable-baselines3"
LENGTH = "total_timesteps"
SLOTS_IN_USE = 2
FLATTEN, MINIBATCH = "update.flatten", "update.minibatch"
_KNOBS = (
    *("n_steps", "batch_size", "micro_batch_size", "n_epochs"),
    *("buffer_size", "learning_starts", "gradient_steps"),
)


@dataclass(kw_only=True)
class SeenUpdate:
    """What updates have shown of themselves so far."""

    whole_rollout: bool = False
    flattened: bool = False


def read(model: Any, length: int | None, callback: Any, seen: SeenUpdate) -> RunSpec:
    """The facts of a model that is about to learn for `length` steps, None where nobody knows."""
    on_policy = hasattr(model, "rollout_buffer")
    knobs = {"n_envs": int(model.n_envs)}
    for name in _KNOBS:
        value = getattr(model, name, None)
        if isinstance(value, int) and not isinstance(value, bool):
            knobs[name] = value
    # Off-policy, n_steps is the length of n-step returns, not of a rollout.
    knobs.pop("buffer_size" if on_policy else "n_steps", None)
    if length is not None:
        knobs[LENGTH] = int(length)
    elif not on_policy:
        knobs[LENGTH] = knobs["buffer_size"]
    return RunSpec(
        library=NAME,
        version=version_of("stable_baselines3"),
        algorithm=type(model).__name__,
        policy=type(model.policy).__name__,
        knobs=knobs,
        on_policy=on_policy,
        observation=tuple(_observation(model.observation_space)),
        arrays=(
            *(_rollout(model, seen) if on_policy else replay_arrays(model)),
            *_shared_observations(model),
        ),
        windows=tuple(_windows(model)),
        notes=tuple(_window_notes(model)),
        networks=tuple(_networks(model)),
        vec_env=_vec_env(model.env, on_policy),
        callbacks=tuple(_callbacks(callback)),
        update=_rollout_update(knobs, seen) if on_policy else _REPLAY_UPDATE,
        scale=_scale(knobs, on_policy, seen),
        length=LENGTH if LENGTH in knobs else "",
        first_update="n_steps * n_envs" if on_policy else "learning_starts + 1",
        buffer=type(model.rollout_buffer if on_policy else model.replay_buffer).__name__,
        device=str(model.device),
    )


_REPLAY_UPDATE = UpdateSpec(batch="batch_size", minibatch="batch_size", moment=MINIBATCH)


def _rollout_update(knobs: dict[str, int], seen: SeenUpdate) -> UpdateSpec:
    rollout = minibatch = "n_steps * n_envs"
    if "batch_size" in knobs and not seen.whole_rollout:
        # A minibatch may go through in smaller pieces, as in memfit's own MicroBatchPPO.
        micro = "micro_batch_size" in knobs
        minibatch = "min(batch_size, micro_batch_size)" if micro else "batch_size"
    iterations = f"ceil_div({LENGTH}, {rollout})" if LENGTH in knobs else 0
    return UpdateSpec(batch=rollout, minibatch=minibatch, iterations=iterations, moment=MINIBATCH)


def _scale(knobs: dict[str, int], on_policy: bool, seen: SeenUpdate) -> dict[str, int]:
    """The knobs that make the run larger or smaller; a replay grows until it is full."""
    names = ["n_steps"] if on_policy else []
    names += ["batch_size"] if "batch_size" in knobs and not seen.whole_rollout else []
    scale = {name: knobs[name] for name in names}
    if not on_policy:
        scale[LENGTH] = min(knobs[LENGTH], max(knobs["buffer_size"], knobs["n_envs"]))
    return scale


def array_names(spec: RunSpec) -> list[str]:
    """The paths of a run's buffer arrays, seen from the buffer."""
    own = (a for a in spec.arrays if a.kind == "buffer")  # not copies and indices
    return [array.name.partition(".")[2] for array in own]


def _observation(space: Any) -> Iterator[ArraySpec]:
    parts = space.spaces.items() if hasattr(space, "spaces") else [("", space)]
    for key, part in parts:
        yield ArraySpec(
            name=f"observation.{key}" if key else "observation",
            shape=tuple(part.shape or ()),
            dtype=str(part.dtype),
            itemsize=part.dtype.itemsize if part.dtype is not None else 8,
        )


def _rollout(model: Any, seen: SeenUpdate) -> Iterator[ArraySpec]:
    """The arrays of a rollout, the copy of the largest while it is flattened, and its indices."""
    arrays = list(rollout_arrays(model))
    # A buffer of one env is flattened without a copy.
    copied_in = FLATTEN if seen.flattened and model.n_envs > 1 else ""
    yield from (replace(array, copied_in=copied_in) for array in arrays)
    if seen.flattened and arrays:
        largest = max(arrays, key=fixed_bytes)
        yield replace(
            largest,
            name="rollout_buffer.flatten_copy",
            shape=("min(n_envs - 1, 1)", *largest.shape),
            kind="copies",
            phases=(FLATTEN,),
            where="RolloutBuffer.get: swap_and_flatten copies one array at a time",
        )
    yield ArraySpec(
        name="update.indices",
        shape=("n_steps", "n_envs"),
        dtype="int64",
        itemsize=8,
        kind="copies",
        phases=(MINIBATCH,),
        where="RolloutBuffer.get: a permutation of int64",
    )


def rollout_arrays(model: Any) -> Iterator[ArraySpec]:
    for name, array in _arrays(model.rollout_buffer):
        yield _array(f"rollout_buffer.{name}", array, "n_steps", model.n_envs)


def replay_arrays(model: Any) -> Iterator[ArraySpec]:
    buffer = model.replay_buffer
    for name, array in _arrays(buffer) if buffer is not None else ():
        spec = _array(f"replay_buffer.{name}", array, "rows", model.n_envs)
        yield replace(
            spec,
            shape=("max(buffer_size // n_envs, 1)", *spec.shape[1:]),
            filled=f"ceil_div({LENGTH}, n_envs)",
            mapped=True,
        )


def _arrays(buffer: Any) -> Iterator[tuple[str, Any]]:
    """Arrays with a row for each step; a view of another one is left out."""
    for name, value in vars(buffer).items():
        items = value.items() if isinstance(value, dict) else [("", value)]
        for key, item in items:
            shape = getattr(item, "shape", None)
            if hasattr(item, "track"):  # windows, which are read by _windows
                continue
            if shape and hasattr(item, "__setitem__") and shape[0] == buffer.buffer_size:
                yield (f"{name}.{key}" if key else name), item


def _windows(model: Any) -> Iterator[WindowSpec]:
    """What memfit's own buffers store once, as far as they have found it by now."""
    of = "rollout_buffer" if hasattr(model, "rollout_buffer") else "replay_buffer"
    for track in getattr(getattr(model, of), "tracks", {}).values():
        name = f"{of}.observations.{track.name}" if track.name else f"{of}.observations"
        for part in track.parts:
            whole = len(track.parts) == 1
            yield WindowSpec(
                name=name if whole else f"{name}[{part.offset}:{part.end}]",
                length=part.length,
                new=part.new,
                row_bytes=part.row * track.dtype.itemsize,
            )


def _window_notes(model: Any) -> Iterator[str]:
    tracks = getattr(getattr(model, "replay_buffer", None), "tracks", {}).values()
    if any(track.storage.compression for track in tracks):
        yield "the replay is compressed: it is planned as if it were not, at most it takes that"
    if any(track.storage.kind == "disk" for track in tracks):
        yield "the replay is in a file, whose pages the system takes back where memory is short"


def _array(name: str, array: Any, rows: str, n_envs: int) -> ArraySpec:
    shape: list[int | str] = [rows, *(int(n) for n in array.shape[1:])]
    # (rows, n_envs, ...) in every buffer but the recurrent states: (rows, layers, n_envs, hidden)
    for axis in (2, 1) if "_states_" in name else (1, 2):
        if axis < len(shape) and shape[axis] == n_envs:
            shape[axis] = "n_envs"
            break
    dims = ", ".join(str(n) for n in shape)
    return ArraySpec(
        name=name,
        shape=tuple(shape),
        dtype=str(array.dtype),
        itemsize=int(getattr(array, "itemsize", 0) or array.element_size()),
        phases=TRAINING,
        where=f"model.{name}: {array.dtype} ({dims})",
    )


def optimizers_of(model: Any) -> Iterator[tuple[str, Any]]:
    """Every optimizer of the policy, its parts and the algorithm, once."""
    import torch

    owners = [("model", model), ("policy", model.policy)]
    owners += [(f"policy.{name}", part) for name, part in model.policy.named_children()]
    seen: set[int] = set()
    for owner, thing in owners:
        for name, value in vars(thing).items():
            if isinstance(value, torch.optim.Optimizer) and id(value) not in seen:
                seen.add(id(value))
                yield f"{owner}.{name}", value


def _networks(model: Any) -> Iterator[NetworkSpec]:
    optimizers = [optimizer for _, optimizer in optimizers_of(model)]
    return networks_of(tensors_of(model.policy), optimizers, trained="policy", others="target")


def is_light(env: Any) -> bool:
    """Whether this is memfit's own vector env, whose workers run several envs each."""
    return any(kind.__name__ == "LightVecEnv" for kind in type(env).__mro__)


def _shared_observations(model: Any) -> Iterator[ArraySpec]:
    """What a LightVecEnv has in shared memory: the observations before and after a step."""
    env = model.env.unwrapped
    if is_light(env):
        parts = _observation(env.observation_space)
        yield ArraySpec(
            name="workers.shared_observations",
            shape=(dropin_arrays.SLOTS, "n_envs", sum(map(fixed_bytes, parts))),
            dtype="uint8",
            itemsize=1,
            kind="copies",
            phases=TRAINING,
            filled=SLOTS_IN_USE,
            mapped=True,
            place=Place.SHARED,
            where=f"LightVecEnv: {dropin_arrays.SLOTS} slots in shared memory, two of them in use",
        )


def _vec_env(env: Any, on_policy: bool) -> VecEnvSpec:
    wrappers: list[Any] = []
    while hasattr(env, "venv"):
        wrappers.append(env)
        env = env.venv
    inner: Any = next(iter(getattr(env, "envs", [])), None)
    while hasattr(inner, "env"):
        wrappers.append(inner)
        inner = inner.env
    return VecEnvSpec(
        kind=type(env).__name__,
        wrappers=tuple(type(wrapper).__name__ for wrapper in wrappers),
        start_method=getattr(env, "memfit_start_method", ""),
        stack=_stack(wrappers, on_policy),
    )


def _stack(wrappers: list[Any], on_policy: bool) -> int:
    """The frames of an observation as it is stored; wrappers stand from the outside in.

    Frames that are normalised after they were stacked are others in each observation. A replay
    stores what `VecNormalize` was given.
    """
    for wrapper in wrappers:
        names = {cls.__name__ for cls in type(wrapper).__mro__}
        if "NormalizeObservation" in names:
            return 1
        if "VecNormalize" in names and wrapper.norm_obs and on_policy:
            return 1
        if "VecFrameStack" in names:
            return int(wrapper.stacked_obs.n_stack)
        if names & {"FrameStackObservation", "StackFrames"}:
            return int(wrapper.stack_size)
    return 1


def callbacks_of(callback: Any) -> Iterator[Any]:
    """Every single callback, however deep it stands in lists of callbacks."""
    if callback is None:
        return
    parts = callback if isinstance(callback, list) else getattr(callback, "callbacks", None)
    if parts is None:
        yield callback
        return
    for part in parts:
        yield from callbacks_of(part)


def eval_env(callback: Any) -> Any:
    """The env of the run's evaluation callback, if it has one."""
    return next((p.eval_env for p in callbacks_of(callback) if hasattr(p, "eval_env")), None)


def _callbacks(callback: Any) -> Iterator[CallbackSpec]:
    """What evaluates and what saves."""
    for part in callbacks_of(callback):
        divided = is_divided(part)
        if hasattr(part, "eval_env"):
            often = CallbackSpec(kind="save", every_steps=int(part.eval_freq), divided=divided)
            yield replace(often, kind="evaluate", n_envs=int(part.eval_env.num_envs))
            if getattr(part, "best_model_save_path", None):
                yield often
        elif hasattr(part, "save_freq"):
            yield CallbackSpec(
                kind="save",
                every_steps=int(part.save_freq),
                divided=divided,
                saves_replay_buffer=bool(getattr(part, "save_replay_buffer", False)),
            )
