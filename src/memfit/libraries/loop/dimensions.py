"""Dimensions of a run's arrays as formulas of its settings."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace

from memfit.model import ArraySpec, EvidenceKind

_TOLD_ALONE = 16  # smaller numbers are the same by chance, unless the name says more
# Names that say so where two settings have the same value, the more telling first.
_TELLING = (
    *("num_envs", "n_envs", "num_steps", "n_steps", "rollout", "horizon", "buffer_size"),
    *("capacity", "memory_size", "replay_size", "batch_size", "minibatch", "agents"),
)
_LENGTHS = (
    *("total_timesteps", "total_steps", "max_steps", "num_timesteps", "n_timesteps"),
    *("total_env_steps", "max_timesteps", "timesteps", "num_frames", "total_frames"),
)
# May be of a rollout too: only where the run has not gone further already.
_MAYBE_LENGTHS = ("steps", "num_env_steps", "n_steps_total")


def length_setting(settings: Mapping[str, int], seen: int = 0) -> str:
    """The setting that says after how many env steps a run ends; nothing where none does.

    So many steps were `seen`.
    """
    lower = {name.lower(): name for name in settings}
    likely = (name for name in _MAYBE_LENGTHS if settings.get(lower.get(name, ""), 0) > seen)
    return next((lower[name] for name in (*_LENGTHS, *likely) if name in lower), "")


def with_formulas(array: ArraySpec, settings: Mapping[str, int]) -> ArraySpec:
    """An array whose dimensions are settings, or two of them multiplied or divided."""
    if array.kind not in ("buffer", "arrays"):
        return array  # networks have shapes of their own
    shape = tuple(_formula(n, settings) if isinstance(n, int) else n for n in array.shape)
    if shape == array.shape:
        return array
    return replace(array, shape=shape, evidence=EvidenceKind.PROBED)


def _formula(dimension: int, settings: Mapping[str, int]) -> int | str:
    names = sorted(settings, key=_rank)
    lengths = {name.lower() for name in _LENGTHS}
    names = [name for name in names if name.lower() not in lengths]
    for name in names:
        if settings[name] == dimension > 1 and (dimension >= _TOLD_ALONE or _tells(name)):
            return name
    for one, other in itertools.combinations(names, 2):
        is_product = settings[one] * settings[other] == dimension
        if is_product and 1 not in (settings[one], settings[other]) and _tells(one, other):
            return f"{one} * {other}"
    for one, other in itertools.permutations(names, 2):  # a buffer that envs have their part of
        is_part = 1 < settings[other] < settings[one] == dimension * settings[other]
        if is_part and dimension > 1 and _tells(one, other):
            return f"{one} // {other}"
    return dimension


def _rank(name: str) -> tuple[int, str]:
    lower = name.lower()
    at = next((i for i, word in enumerate(_TELLING) if word in lower), len(_TELLING))
    return at, lower


def _tells(*names: str) -> bool:
    """Whether settings are such that arrays are made of: products of others are chance."""
    return all(_rank(name)[0] < len(_TELLING) for name in names)
