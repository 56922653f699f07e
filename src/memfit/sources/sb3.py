"""Read the facts of a run off a live stable-baselines3 model."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from memfit.model import (
    ArraySpec,
    CallbackSpec,
    NetworkSpec,
    RunSpec,
    VecEnvSpec,
    WindowSpec,
)

_KNOBS = (
    *("n_steps", "batch_size", "micro_batch_size", "n_epochs"),
    *("buffer_size", "learning_starts", "gradient_steps"),
)
_LIBRARIES = ("stable_baselines3", "sb3_contrib", "torch", "numpy", "gymnasium")


def read(model: Any, total_timesteps: int | None, callback: Any) -> RunSpec:
    """The facts of a model that is about to learn."""
    on_policy = hasattr(model, "rollout_buffer")
    knobs = {"n_envs": int(model.n_envs)}
    for name in _KNOBS:
        value = getattr(model, name, None)
        if isinstance(value, int) and not isinstance(value, bool):
            knobs[name] = value
    if total_timesteps is not None:
        knobs["total_timesteps"] = int(total_timesteps)
    if on_policy:
        knobs.pop("buffer_size", None)
        arrays = tuple(_rollout_arrays(model))
    else:
        knobs.pop("n_steps", None)  # the length of n-step returns, not of a rollout
        arrays = tuple(_replay_arrays(model))
        if "total_timesteps" not in knobs:
            knobs["total_timesteps"] = knobs["buffer_size"]
    return RunSpec(
        library="stable-baselines3",
        version=_version("stable_baselines3"),
        algorithm=type(model).__name__,
        policy=type(model.policy).__name__,
        knobs=knobs,
        on_policy=on_policy,
        observation=tuple(_observation(model.observation_space)),
        arrays=arrays,
        windows=tuple(_windows(model)),
        notes=tuple(_window_notes(model)),
        networks=tuple(_networks(model)),
        vec_env=_vec_env(model.env, on_policy),
        callbacks=tuple(_callbacks(callback)),
        buffer=type(model.rollout_buffer if on_policy else model.replay_buffer).__name__,
        device=str(model.device),
        versions={
            "python": sys.version.split()[0],
            **{name: _version(name) for name in _LIBRARIES if name in sys.modules},
        },
    )


def array_names(spec: RunSpec) -> list[str]:
    """The paths of a run's buffer arrays, seen from the buffer."""
    return [array.name.partition(".")[2] for array in spec.arrays]


def _version(name: str) -> str:
    return str(getattr(sys.modules.get(name), "__version__", ""))


def _observation(space: Any) -> Iterator[ArraySpec]:
    parts = space.spaces.items() if hasattr(space, "spaces") else [("", space)]
    for key, part in parts:
        yield ArraySpec(
            name=f"observation.{key}" if key else "observation",
            shape=tuple(part.shape or ()),
            dtype=str(part.dtype),
            itemsize=part.dtype.itemsize if part.dtype is not None else 8,
        )


def _rollout_arrays(model: Any) -> Iterator[ArraySpec]:
    buffer = model.rollout_buffer
    for name, array in _arrays(buffer):
        yield _array(f"rollout_buffer.{name}", array, "n_steps", model.n_envs)


def _replay_arrays(model: Any) -> Iterator[ArraySpec]:
    buffer = model.replay_buffer
    for name, array in _arrays(buffer) if buffer is not None else ():
        yield _array(f"replay_buffer.{name}", array, "rows", model.n_envs)


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
    itemsize = int(getattr(array, "itemsize", 0) or array.element_size())
    return ArraySpec(name=name, shape=tuple(shape), dtype=str(array.dtype), itemsize=itemsize)


def _optimizers(model: Any) -> Iterator[tuple[str, Any]]:
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
    optimizers = list(_optimizers(model))
    trained = {id(p) for _, o in optimizers for group in o.param_groups for p in group["params"]}
    own: list[Any] = []
    targets: list[Any] = []
    for tensor in _tensors(model.policy):
        (own if id(tensor) in trained else targets).append(tensor)
    state = sum(_state_bytes(optimizer) for _, optimizer in optimizers)
    names = sorted({type(optimizer).__name__ for _, optimizer in optimizers})
    yield NetworkSpec(
        name="policy",
        parameter_bytes=sum(t.nbytes for t in own),
        gradient_bytes=sum(t.nbytes for t in own if t.requires_grad),
        optimizer="+".join(names),
        optimizer_bytes=state,
        largest_tensor_bytes=max((t.nbytes for t in own), default=0),
    )
    if targets:
        yield NetworkSpec(
            name="target",
            parameter_bytes=sum(t.nbytes for t in targets),
            gradient_bytes=0,
            largest_tensor_bytes=max(t.nbytes for t in targets),
        )


def _tensors(module: Any) -> Iterator[Any]:
    seen: set[int] = set()
    for tensor in (*module.parameters(), *module.buffers()):
        if id(tensor) not in seen:
            seen.add(id(tensor))
            yield tensor


def _state_bytes(optimizer: Any) -> int:
    """What the optimizer holds; before its first step, what its kind will hold."""
    held = sum(
        value.nbytes
        for state in optimizer.state.values()
        for value in state.values()
        if hasattr(value, "nbytes")
    )
    if held:
        return int(held)
    parameters = sum(p.nbytes for group in optimizer.param_groups for p in group["params"])
    defaults = optimizer.defaults
    if "betas" in defaults:
        copies = 3 if defaults.get("amsgrad") else 2
    elif "alpha" in defaults:  # RMSprop
        copies = 1 + bool(defaults.get("momentum")) + bool(defaults.get("centered"))
    else:
        copies = int(bool(defaults.get("momentum")))
    return int(parameters) * copies


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
        if hasattr(part, "eval_env"):
            yield CallbackSpec(
                kind="evaluate",
                every_steps=int(part.eval_freq),
                n_envs=int(part.eval_env.num_envs),
            )
            if getattr(part, "best_model_save_path", None):
                yield CallbackSpec(kind="save", every_steps=int(part.eval_freq))
        elif hasattr(part, "save_freq"):
            yield CallbackSpec(
                kind="save",
                every_steps=int(part.save_freq),
                saves_replay_buffer=bool(getattr(part, "save_replay_buffer", False)),
            )
