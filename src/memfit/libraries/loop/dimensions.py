"""Dimensions of a run's arrays as formulas of its settings."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from memfit.model import ArraySpec, EvidenceKind
from memfit.model.trial import TrialReading

LENGTH = "env_steps"  # the knob of a run's length that no setting of its own says
# Whole cycles may end a little before what a setting says, and evaluations step envs too.
_NEAR, _SAID = 0.05, 0.25  # more where the loop itself names the setting
_TOLD_ALONE = 16  # smaller numbers are the same by chance, unless the name says more
# Names that say so where two settings have the same value, the more telling first.
_TELLING = (
    *("num_envs", "n_envs", "num_steps", "n_steps", "rollout", "horizon", "buffer_size"),
    *("capacity", "memory_size", "replay_size", "batch_size", "minibatch", "agents", "batch"),
)
# Such as total_timesteps, max_env_steps, num_frames, num_train_steps.
_LENGTH_WORDS = re.compile(
    r"(total|max|num|n|nb|all)?_?(total|train|training|env|environment|agent)?_?"
    r"(time_?steps|steps|frames|interactions|transitions)(_total)?"
)
_SURE = re.compile(r"total|time_?steps|frames|env_?steps|train")


def length_setting(settings: Mapping[str, int], trial: TrialReading) -> str:
    """The setting that says after how many env steps a run ends; nothing where none does.

    The loops that the run is in know best: a setting must agree with these. Without them its name
    must say so, and the run must not have gone further; the surest name is taken.
    """
    named = [name for name in settings if _LENGTH_WORDS.fullmatch(name.lower())]
    if trial.run is not None:
        end = trial.run.steps
        words = set(re.findall(r"\w+", trial.run.where))
        near = [
            n for n in named if abs(settings[n] - end) <= (_SAID if n in words else _NEAR) * end
        ]
        return min(near, key=lambda name: abs(settings[name] - end), default="")
    further = [name for name in named if settings[name] > trial.env_steps]
    return max(further, key=lambda name: (_is_sure(name), settings[name]), default="")


def _is_sure(name: str) -> bool:
    return _SURE.search(name.lower()) is not None


def with_formulas(array: ArraySpec, settings: Mapping[str, int], length: str = "") -> ArraySpec:
    """An array whose dimensions are settings, or two of them multiplied or divided.

    The one of the run's `length` is none of these.
    """
    if array.kind not in ("buffer", "arrays"):
        return array  # networks have shapes of their own
    shape = tuple(_formula(n, settings, length) if isinstance(n, int) else n for n in array.shape)
    if shape == array.shape:
        return array
    return replace(array, shape=shape, evidence=EvidenceKind.PROBED)


def without_widths(settings: Mapping[str, int], weights: Iterable[Sequence[int]]) -> dict[str, int]:
    """Settings without those that a dimension of the networks' weights may be.

    No formula says what a network takes, so that one of its sizes would say too little.
    """
    widths = {n for shape in weights if len(shape) > 1 for n in shape}
    return {name: n for name, n in settings.items() if n not in widths or _tells(name)}


def _formula(dimension: int, settings: Mapping[str, int], length: str) -> int | str:
    names = sorted(settings, key=_rank)
    names = [name for name in names if name != length]
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
