"""A loop that was tried again with other settings: which formulas of its arrays hold.

What comes and goes in a phase is a line through both trials, by the bytes of the arrays that grow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from memfit.model import ArraySpec, EvidenceKind, Readings, RunSpec, names_in, parse_size
from memfit.model.trial import TrialAgain, TrialEnd

_SHRINK = (2, 4)  # different for neighbours, so that settings of one value are told apart
_LEAST = 4


def is_complete(readings: Readings) -> bool:
    """Whether a loop was tried, and neither its time nor its memory was over before the end."""
    trial = readings.trial
    return trial is not None and trial.ended in (TrialEnd.SEEN, TrialEnd.WHOLE)


def is_confirmed(readings: Readings) -> bool:
    """Whether a second trial has seen how a loop grows; what no loop is needs none."""
    return readings.trial is None or readings.trial.again is not None


def other_values(spec: RunSpec) -> dict[str, int]:
    """Smaller values of the settings in the run's formulas, for a second trial."""
    found = {}
    for at, (name, value) in enumerate(spec.scale.items()):
        shrink = _SHRINK[at % len(_SHRINK)]
        if value >= _LEAST * shrink:
            found[name] = value // shrink
        elif value >= _LEAST // 2:
            found[name] = value // 2
    return found


def row_values(spec: RunSpec) -> dict[str, int]:
    """The same for settings that are numbers of rows alone, which most programs can do with."""
    rows = _row_settings(spec)
    return {name: value for name, value in other_values(spec).items() if name in rows}


def with_numbers(spec: RunSpec, names: set[str]) -> RunSpec:
    """Facts with numbers for what depends on some settings."""
    arrays = tuple(_without(array, names, spec.knobs) for array in spec.arrays)
    return _with_used(replace(spec, arrays=arrays))


def _with_used(spec: RunSpec) -> RunSpec:
    """Facts with the knobs that formulas have, and that of the run's length."""
    used = {name for array in spec.arrays for name in _names(array)} | {spec.length}
    knobs = {name: value for name, value in spec.knobs.items() if name in used}
    scale = {name: value for name, value in spec.scale.items() if name in used}
    return replace(spec, knobs=knobs, scale=scale)


def with_second(
    spec: RunSpec, readings: Readings, again: RunSpec, second: Readings, *, objects: int = 0
) -> tuple[RunSpec, Readings]:
    """Facts and readings with what a second trial has told of both.

    It held so many bytes in `objects`.
    """
    assert readings.trial is not None and second.trial is not None
    seen = {array.name: array for array in again.arrays}
    changed = {name: again.settings.get(name, value) for name, value in spec.knobs.items()}
    there = {**changed, **again.knobs}
    judged = tuple(_judged(a, seen.get(a.name), spec.knobs, there) for a in spec.arrays)
    shaping = _shaping(spec, again) if _networks(spec) != _networks(again) else set()
    arrays = tuple(_without(a, shaping, spec.knobs) for a in judged)
    told = TrialAgain(
        knobs=changed,
        peaks=dict(second.trial.peaks),
        held=dict(second.trial.held),
        objects=objects,
    )
    trial = replace(readings.trial, again=told)
    return _with_used(replace(spec, arrays=arrays)), replace(readings, trial=trial)


def _networks(spec: RunSpec) -> dict[str, tuple[int | str, ...]]:
    return {array.name: array.shape for array in spec.arrays if array.kind == "parameters"}


def _shaping(spec: RunSpec, again: RunSpec) -> set[str]:
    """The settings that may be those which the networks depend on, where these have changed.

    No formula says what a network takes, so that one of its sizes would say too little. It is no
    number of rows: of envs, of steps, of samples.
    """
    varied = {name for name, value in spec.scale.items() if again.settings.get(name) != value}
    return varied - _row_settings(spec)


def _row_settings(spec: RunSpec) -> set[str]:
    """Settings that are numbers of rows; an array of one dimension may be a row itself."""
    tables = (array.shape for array in spec.arrays if len(array.shape) > 1)
    return {name for shape in tables for name in names_in(shape[0])}


def _without(array: ArraySpec, names: set[str], knobs: Mapping[str, int]) -> ArraySpec:
    """An array with numbers for dimensions that depend on some settings."""
    if not _names(array) & names:
        return array
    shape = tuple(_value(n, knobs) if names.intersection(names_in(n)) else n for n in array.shape)
    kept = replace(array, shape=shape)
    return kept if _names(kept) else replace(kept, evidence=EvidenceKind.MEASURED)


def _judged(
    array: ArraySpec,
    other: ArraySpec | None,
    knobs: Mapping[str, int],
    changed: Mapping[str, int],
) -> ArraySpec:
    """An array, as derived where its formulas hold at the other settings.

    A dimension that stayed as it was though its setting did not is no formula of it.
    """
    if other is None or len(other.shape) != len(array.shape) or not _names(array):
        return array
    shape: list[int | str] = []
    for mine, seen in zip(array.shape, other.shape, strict=True):
        holds = _value(mine, changed) == _value(seen, changed)
        shape.append(mine if holds else _value(mine, knobs))
    kept = replace(array, shape=tuple(shape))
    if not _names(kept):
        return replace(kept, evidence=EvidenceKind.MEASURED)
    if not all(name in changed and changed[name] != knobs[name] for name in _names(kept)):
        return kept
    where = f"{array.where}; a second trial with other settings agrees"
    return replace(kept, evidence=EvidenceKind.DERIVED, where=where)


def _names(array: ArraySpec) -> set[str]:
    return {name for n in array.shape for name in names_in(n)}


def _value(dimension: int | str, knobs: Mapping[str, int]) -> int:
    return parse_size(dimension, knobs).evaluate(knobs)
