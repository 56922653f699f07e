"""Observations in a smaller dtype, each proved to have lost nothing.

env = NarrowObservation(env, numpy.uint8)  # an env whose whole numbers come as float32, say
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from memfit.errors import UsageError

Array = NDArray[Any]
_LOG = logging.getLogger("memfit.dropins")

# The order in which `narrowest` tries them: few bytes first, whole numbers before others.
CANDIDATES = tuple(
    np.dtype(code) for code in ("u1", "i1", "u2", "i2", "f2", "u4", "i4", "f4", "u8", "i8", "f8")
)
ON_LOSS = ("raise", "round")


def lost(before: Array, after: Array) -> Array:
    """Which numbers of `before` are others in `after`: NaN is NaN, and -0.0 is not 0.0."""
    with np.errstate(all="ignore"):
        back = after.astype(before.dtype)
    if before.dtype.kind == "f":
        other = (back != before) & ~(np.isnan(back) & np.isnan(before))
        other |= (before == 0) & (np.signbit(back) != np.signbit(before))
    else:
        other = back != before
    # Conversions beyond a range may come back as if nothing had happened: look at the range too.
    for whole, number in ((before, after), (after, before)):
        if whole.dtype.kind in "iu" and number.dtype.kind == "f":
            info, wide = np.iinfo(whole.dtype), number.astype(np.float64)
            other |= ~((wide >= float(info.min)) & (wide < float(info.max) + 1.0))
    if before.dtype.kind in "iu" and after.dtype.kind in "iu":
        other |= (before < 0) != (after < 0)
    return np.asarray(other)


def converted(values: Array, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """Numbers as another dtype, and which of them are others there."""
    with np.errstate(all="ignore"):
        after = values.astype(dtype)
    return after, lost(values, after)


def narrowest(observations: Any) -> np.dtype[Any]:
    """The smallest dtype in which none of these numbers is another."""
    seen = np.asarray(observations)
    if seen.dtype.kind not in "iuf":
        return seen.dtype
    for dtype in CANDIDATES:
        if dtype.itemsize < seen.dtype.itemsize and not converted(seen, dtype)[1].any():
            return dtype
    return seen.dtype


class NarrowObservation(
    gymnasium.ObservationWrapper[Any, Any, Any], gymnasium.utils.RecordConstructorArgs
):
    """Observations as `dtype`, checked number by number: none is another than before.

    For a Dict, `dtype` may be `{key: dtype}`; otherwise it is for every part that is larger. An
    observation that would lose something raises at that step and names the number. With
    `on_loss="round"` a float that has no exact value there is rounded, counted in `rounded` and
    told once to the logger `memfit.dropins`; what is out of range still raises.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], dtype: Any, *, on_loss: str = "raise") -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(self, dtype=dtype, on_loss=on_loss)
        gymnasium.ObservationWrapper.__init__(self, env)
        if on_loss not in ON_LOSS:
            raise UsageError(f"on_loss={on_loss!r} is not known: give one of {ON_LOSS}")
        self.on_loss = on_loss
        self.rounded = 0
        self.dtypes: dict[str, np.dtype[Any]] = {}
        self.observation_space = self._narrowed(env.observation_space, dtype, "observation")
        if not self.dtypes:
            raise UsageError(
                f"no part of {env.observation_space} is larger than {dtype}: leave the wrapper "
                "out, or ask for a smaller dtype"
            )

    @classmethod
    def found(
        cls, env: gymnasium.Env[Any, Any], *, steps: int = 1000, seed: int = 0
    ) -> NarrowObservation:
        """Step the env with random actions, and take the smallest dtypes that lose nothing.

        What comes later is checked as ever. Reset the env afterwards, as before any training.
        """
        return cls(env, found_dtypes(env, steps=steps, seed=seed))

    def observation(self, observation: Any) -> Any:
        """The same numbers in fewer bytes."""
        return self._convert(self.env.observation_space, observation, "observation")

    def _narrowed(self, space: spaces.Space[Any], dtype: Any, name: str) -> spaces.Space[Any]:
        if isinstance(space, spaces.Dict):
            if isinstance(dtype, Mapping) and (unknown := sorted(set(dtype) - set(space.spaces))):
                raise UsageError(
                    f"{name} has no {', '.join(map(repr, unknown))}: its keys are "
                    f"{', '.join(map(repr, space.spaces))}"
                )
            of = dtype if isinstance(dtype, Mapping) else dict.fromkeys(space.spaces, dtype)
            inner = {
                key: self._narrowed(part, of[key], f"{name}[{key!r}]") if key in of else part
                for key, part in space.spaces.items()
            }
            return spaces.Dict(inner)
        if isinstance(dtype, Mapping):
            raise UsageError(f"{name} is no Dict: give one dtype for it, such as numpy.float32")
        if not isinstance(space, spaces.Box):
            return space
        asked = _dtype(dtype)
        if asked.itemsize >= np.dtype(space.dtype).itemsize:
            return space
        self.dtypes[name] = asked
        return spaces.Box(*_bounds(space, asked, name), dtype=asked.type)

    def _convert(self, space: spaces.Space[Any], value: Any, name: str) -> Any:
        if isinstance(space, spaces.Dict):
            if not isinstance(value, Mapping) or value.keys() != space.spaces.keys():
                found = sorted(value) if isinstance(value, Mapping) else type(value).__name__
                raise UsageError(
                    f"{name} has {found}, its space has {sorted(space.spaces)}: fix what the env "
                    "returns, or its observation_space"
                )
            return {
                key: self._convert(part, value[key], f"{name}[{key!r}]")
                for key, part in space.spaces.items()
            }
        if name not in self.dtypes:
            return value
        given = np.asarray(value)
        if given.shape != space.shape or given.dtype.kind not in "iufb":
            raise UsageError(
                f"{name} is {given.dtype} {given.shape}, its space is {space.dtype} "
                f"{space.shape}: fix what the env returns, or its observation_space"
            )
        small, other = converted(given, self.dtypes[name])
        if other.any():
            self._lost(given, small, other, name)
        return small

    def _lost(self, given: Array, small: Array, other: Array, name: str) -> None:
        where = tuple(int(i) for i in np.argwhere(other)[0])
        at = f"{name}[{', '.join(map(str, where))}]" if where else name
        text = f"{at} is {given[where].item()!r}, which {small.dtype} makes {small[where].item()!r}"
        if self.on_loss == "raise":
            hint = ", or on_loss='round'" if small.dtype.kind == "f" else ""
            raise UsageError(f"{text}: ask for a wider dtype for it{hint}")
        rounds = np.isfinite(small) & np.isfinite(given) if small.dtype.kind == "f" else ~other
        if not rounds[other].all():
            raise UsageError(f"{text}, which is no rounding: ask for a wider dtype for it")
        if not self.rounded:
            _LOG.warning("%s; this and others are rounded, as on_loss='round' asks", text)
        self.rounded += int(other.sum())


def found_dtypes(env: gymnasium.Env[Any, Any], *, steps: int = 1000, seed: int = 0) -> Any:
    """The smallest dtype of each part that loses nothing on what an env shows at random."""
    space = env.observation_space
    best: dict[tuple[str, ...], list[np.dtype[Any]]] = {}
    env.action_space.seed(seed)
    obs, _ = env.reset(seed=seed)
    for step in range(steps + 1):
        for path, value in _arrays(space, obs):
            fitting = best.setdefault(path, list(CANDIDATES))
            best[path] = [dtype for dtype in fitting if not converted(value, dtype)[1].any()]
        if step < steps:
            obs, _, terminated, truncated, _ = env.step(env.action_space.sample())
            if terminated or truncated:
                obs, _ = env.reset()
    asked: Any = {}
    for path, fitting in best.items():
        if not path:
            return fitting[0] if fitting else space.dtype
        inner = asked
        for key in path[:-1]:
            inner = inner.setdefault(key, {})
        if fitting:
            inner[path[-1]] = fitting[0]
    return asked


def _arrays(space: Any, obs: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[Any, Array]]:
    if isinstance(space, spaces.Dict):
        for key, part in space.spaces.items():
            yield from _arrays(part, obs[key], (*path, key))
    elif isinstance(space, spaces.Box):
        yield path, np.asarray(obs)


def _dtype(asked: Any) -> np.dtype[Any]:
    try:
        dtype: np.dtype[Any] = np.dtype(asked)
    except TypeError:
        dtype = np.dtype(object)
    if dtype.kind not in "iuf":
        raise UsageError(
            f"dtype={asked!r} holds no numbers: give one such as numpy.float32 or numpy.uint8"
        )
    return dtype


def _bounds(space: spaces.Box, dtype: np.dtype[Any], name: str) -> tuple[Array, Array]:
    """The bounds of a space as another dtype; beyond its range, the range."""
    with np.errstate(all="ignore"):
        if dtype.kind == "f":
            return space.low.astype(dtype), space.high.astype(dtype)
    info = np.iinfo(dtype)
    # At most four bytes, since it is narrower: float64 holds all of them.
    low = np.clip(np.ceil(space.low.astype(np.float64)), info.min, info.max).astype(dtype)
    high = np.clip(np.floor(space.high.astype(np.float64)), info.min, info.max).astype(dtype)
    if (low > high).any():
        raise UsageError(
            f"{name} lies between bounds without a whole number: ask for a float such as "
            "numpy.float16"
        )
    return low, high
