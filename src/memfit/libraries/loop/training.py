"""A training loop's facts, from what its variables held while it ran."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from memfit.formulas.shared_rows import BUILT, TRAINING
from memfit.libraries.driven import version_of
from memfit.libraries.loop.constants import settable
from memfit.libraries.loop.dimensions import (
    LENGTH,
    length_setting,
    with_formulas,
    without_widths,
)
from memfit.libraries.loop.filling import fill_rate, filled_after, rows_after, steps_to_fill
from memfit.libraries.loop.jax_programs import program_arrays
from memfit.libraries.loop.own_files import OwnFiles
from memfit.libraries.loop.ray_calls import PROCESSES
from memfit.libraries.loop.setting_sources import SettingSources
from memfit.libraries.loop.settings import settings_in
from memfit.libraries.loop.signals import Signals
from memfit.model import ArraySpec, EvidenceKind, ProcessNames, RunSpec, names_in
from memfit.model.training import LoopFacts, Looping, LoopListener
from memfit.model.trial import TrialArrays, TrialEnd, TrialReading

NAME, JAX = "loop", "jax"
_LEAST = 16 * 1024  # smaller arrays have a row together
_FILLED = 0.97  # an array of which more is resident is there in full
_LARGE_PAGE = 2 * 2**20  # that the kernel may give to large arrays
_FILLS = 2**20  # a buffer that is worth to be told how it fills
_CALL = re.compile(r"^[\w.<>]+\(\)\.?")
_STEP = re.compile(r"[^.\[\]\s]+")
_WEIGHTS = re.compile(r"\.(weight|bias|running_mean|running_var|in_proj_\w+|weight_\w+|bias_\w+)$")
# As flax and optax name them; a list of parameters, as those of distributions, is none.
_JAX_TREE = re.compile(r"(.*?\b\w*?(params(?!\[[\d*])|opt_state)(?:'\])?)(?:$|[\W_])")
_SAVES = ("torch.save(", "pickle.dump(")
_EVALUATES = re.compile(r"\bdef (evaluate\w*|eval_\w+|run_eval\w*|test_(agent|policy))\(")
_ITEMSIZE = re.compile(r"(\d+)")


@dataclass(frozen=True, kw_only=True)
class _Row:
    """One row to be: how its arrays are named together, and what they are."""

    name: str
    kind: str
    held: TrialArrays


class LoopTraining(Looping):
    """A loop that no library owns, while it runs."""

    def __init__(
        self, signals: Signals, own: OwnFiles, sources: SettingSources, *, least: int = _LEAST
    ) -> None:
        self.signals = signals
        self.own = own
        self.sources = sources
        self.least = least

    def facts(self) -> RunSpec:
        in_jax = JAX in sys.modules and not self.signals.optimizers
        packages = [name for name in (JAX if in_jax else "torch",) if name in sys.modules]
        return RunSpec(
            library=JAX if in_jax else NAME,
            version=" ".join(f"{name} {version_of(name)}" for name in packages),
            algorithm="training loop",
            policy="",
            knobs={},
            on_policy=True,
        )

    def identity(self) -> object:
        return self.signals

    def listen(self, listener: LoopListener) -> None:
        self.signals.listener = listener

    def dismiss(self) -> None:
        self.signals.stop()

    def processes(self) -> ProcessNames:
        return PROCESSES if "ray" in sys.modules else ProcessNames()

    def observed(
        self,
        trial: TrialReading,
        held: Mapping[str, Sequence[TrialArrays]],
        variables: Iterable[tuple[str, Any]],
    ) -> LoopFacts:
        texts = list(self.own.texts())
        settings = self._settings(variables, texts)
        length = length_setting(settings, trial) or LENGTH
        rollout, update = held.get("rollout", ()), held.get("update", ())
        trained = {row.path.removesuffix(" grad") for row in update if row.path.endswith(" grad")}
        in_update = _together(update, trained, self.least)
        last = _together(rollout, trained, self.least) or in_update
        named = ((one.shape, _named(one, trained, self.least)[1]) for one in update)
        weights = (shape for shape, kind in named if kind == "parameters")
        sizes = without_widths(settings, weights)
        arrays: list[ArraySpec] = []
        fills: list[tuple[int, int]] = []
        endless: list[str] = []
        resident: dict[str, int] = {}
        for name, row in {**in_update, **last}.items():
            there = {p for p, rows in (("rollout", last), ("update", in_update)) if name in rows}
            phases = _phases(row.kind, there, one_look=not (rollout and update))
            array = self._array(row, phases, trial, length)
            if row.held.grows:
                endless += [name] if _is_large(array) else []
            elif isinstance(array.filled, str):
                rows = int(array.shape[0])
                fills.append((rows, _filled_rows(row.held, rows)[1]))
            arrays.append(with_formulas(array, sizes, length))
            resident[name] = row.held.resident
        for array, size in program_arrays(trial, self.signals.learning):
            arrays.append(with_formulas(array, settings, length))
            resident[array.name] = size
        told = replace(trial, held=resident, played=self.signals.played)
        knobs = {name: settings[name] for name in _names(arrays)}
        scale = dict(knobs)
        if length in settings:
            knobs[length] = settings[length]
        elif any(isinstance(array.filled, str) for array in arrays):
            knobs[length] = trial.run.steps if trial.run else _until_full(fills, trial)
        spec = replace(
            self.facts(),
            knobs=knobs,
            settings=settings,
            arrays=tuple(arrays),
            scale=scale,
            length=length if length in knobs else "",
            first_update=min(trial.first_update, knobs.get(length, trial.first_update)),
            notes=(*_notes(told, knobs), *_unseen(told, texts), *_endless(told, endless)),
        )
        return LoopFacts(spec=spec, trial=told)

    def _settings(self, variables: Iterable[tuple[str, Any]], texts: list[str]) -> dict[str, int]:
        """The settings that the program itself gives values to, or reads."""
        given: dict[str, bool] = {}
        for text in texts:
            for name, plain in settable(text).items():
                given[name] = given.get(name, False) or plain
        return settings_in(variables, given, self.sources.values, self.own.has)

    def _array(
        self, row: _Row, phases: tuple[str, ...], trial: TrialReading, length: str
    ) -> ArraySpec:
        held = row.held
        item = _itemsize(held)
        shape: tuple[int, ...] = held.shape
        if held.count != 1 or prod(shape) * item != held.bytes:
            shape, item = (held.bytes,), 1
        filled: int | str | None = None
        if held.grows and trial.run is not None and trial.env_steps:
            each = max(1, held.bytes // held.elements)
            rate = fill_rate(held.elements, trial.env_steps)
            rows = max(held.elements, rows_after(trial.run.steps, rate))
            shape, item, filled = (rows, each), 1, filled_after(length, rate)
        elif held.capacity > held.elements:
            each = max(1, held.bytes // held.elements)
            shape, item = (held.capacity, each), 1
            filled = _fill(held.elements, held.elements, trial, length)
        elif held.resident < _FILLED * held.bytes and shape and shape[0]:
            least, rows = _filled_rows(held, shape[0])
            fills = held.bytes >= _FILLS and trial.env_steps and phases != ("update",)
            filled = _fill(least, rows, trial, length) if fills and rows else rows
        return ArraySpec(
            name=row.name,
            shape=shape,
            dtype=held.dtype,
            itemsize=item,
            kind=row.kind,
            phases=phases,
            filled=filled,
            evidence=EvidenceKind.MEASURED,
            where=_where(held, trial, filled),
        )


def _unseen(trial: TrialReading, texts: Sequence[str]) -> Iterator[str]:
    """What the script may do later that the trial has not seen."""
    if trial.elsewhere:
        yield (
            "the script itself only waited for processes that it had started: they may train, which"
            " is not seen, and the plan is what all of them took"
        )
    elif not trial.updates:
        yield (
            f"no step of an optimizer, no gradient and no fit() was seen in {trial.env_steps:,}"
            f" env steps and {trial.cycles:,} turns of the script's loop: the plan is what "
            "these took"
        )
    elif trial.whole:
        yield (
            "the training is one compiled program, which was ended when its memory had stopped "
            "growing: what the script does after it is not in this plan"
        )
    elif not trial.env_steps:
        yield (
            "no env was stepped before enough updates were seen: where the script goes on to "
            "something else after these, that is not in this plan"
        )
    if "evaluate" not in trial.peaks and any(map(_EVALUATES.search, texts)):
        yield (
            "the script has a function that evaluates, and stepped no other env in the trial: what "
            "an evaluation adds later is not in this plan"
        )
    if "save" not in trial.peaks and any(call in text for text in texts for call in _SAVES):
        yield (
            "the script writes checkpoints, and wrote none in the trial: what that adds for a "
            "moment is not in this plan"
        )


def _endless(trial: TrialReading, names: Sequence[str]) -> Iterator[str]:
    """What is said of lists that grow with the run."""
    known = trial.run is not None and trial.env_steps
    for name in names:
        how = "as they will be at its end" if known else "as they were: its length is not known"
        yield f"{name}: arrays in a list that grows as long as the run goes on, here {how}"


def _is_large(array: ArraySpec) -> bool:
    return array.itemsize * prod(n for n in array.shape if isinstance(n, int)) >= _FILLS


def _filled_rows(held: TrialArrays, rows: int) -> tuple[int, int]:
    """How many of the rows of a buffer have been written at least, and are there at most.

    Its last page may be a large one, of which one row was written. Of a queue, its elements.
    """
    if held.capacity:
        return held.elements, held.elements
    each = max(1, held.bytes // rows)
    return -(-max(0, held.resident - _LARGE_PAGE) // each), -(-held.resident // each)


def _fill(least: int, rows: int, trial: TrialReading, length: str) -> str:
    return filled_after(length, fill_rate(rows, max(1, trial.env_steps), least))


def _names(arrays: Iterable[ArraySpec]) -> list[str]:
    """The settings in the shapes of arrays, in the order in which they come."""
    return list(dict.fromkeys(name for a in arrays for n in a.shape for name in names_in(n)))


def _until_full(arrays: Iterable[tuple[int, int]], trial: TrialReading) -> int:
    """The env steps after which buffers are full, of so many rows each and so many filled."""
    steps = max(1, trial.env_steps)
    needed = (steps_to_fill(rows, fill_rate(filled, steps)) for rows, filled in arrays if filled)
    return max((trial.env_steps, *needed))


def _where(held: TrialArrays, trial: TrialReading, filled: int | str | None) -> str:
    size = f"{held.count:,} arrays" if held.count != 1 else f"{held.dtype} {held.shape}"
    said = f"held by the run's variables in a trial of {trial.length}: {size}"
    if held.grows:
        said += f" in a list of {held.elements:,} that grows with the run"
    elif isinstance(filled, str) and held.capacity:
        said += f" in a queue of {held.elements:,} of at most {held.capacity:,}"
    elif isinstance(filled, str):
        share = held.resident / max(1, held.bytes)
        said += f"; {share:.1%} of it was filled after {trial.env_steps:,} env steps"
    return said


def _phases(kind: str, there: set[str], *, one_look: bool) -> tuple[str, ...]:
    if kind == "parameters":
        return BUILT
    if one_look or there == {"rollout", "update"}:
        return TRAINING
    return ("update",) if there == {"update"} else ("rollout", "evaluate", "save")


def _together(rows: Sequence[TrialArrays], trained: set[str], least: int) -> dict[str, _Row]:
    """Rows by the names that they are given: networks as a whole, small arrays together."""
    found: dict[str, _Row] = {}
    for held in rows:
        name, kind = _named(held, trained, least)
        known = found.get(name)
        both = held if known is None else _sum(known.held, held)
        found[name] = _Row(name=name, kind=kind, held=both)
    return found


def _sum(one: TrialArrays, other: TrialArrays) -> TrialArrays:
    return replace(
        one,
        bytes=one.bytes + other.bytes,
        resident=one.resident + other.resident,
        count=one.count + other.count,
    )


def _named(held: TrialArrays, trained: set[str], least: int) -> tuple[str, str]:
    path = _CALL.sub("", held.path) or held.path
    if path.endswith(" grad"):
        return f"{_network(path.removesuffix(' grad'))}.gradients", "gradients"
    if held.path in trained or _WEIGHTS.search(path):
        return f"{_network(path)}.parameters", "parameters"
    if (tree := _JAX_TREE.match(path)) is not None:
        return tree.group(1), "optimizer" if tree.group(2) == "opt_state" else "parameters"
    if " " in path and _STEP.match(path):
        owner, _, state = path.partition(" ")
        if state.isidentifier():
            return f"{owner}.state", "optimizer"
    if held.bytes < least and not (held.capacity or held.grows):
        return "arrays.small", "arrays"
    return path, "buffer"


def _network(path: str) -> str:
    """`agent.actor` for `agent.actor.0.weight`: the variable, and the part of it."""
    steps = _STEP.findall(path)[:-1]
    steps = steps[:-1] if len(steps) > 1 else steps  # the layer itself
    return ".".join([step for step in steps if not step.isdigit() and step != "*"][:2]) or path


def _itemsize(held: TrialArrays) -> int:
    if held.dtype.endswith("bool"):
        return 1
    bits = _ITEMSIZE.search(held.dtype)
    return max(1, int(bits.group(1)) // 8) if bits else 1


def _notes(trial: TrialReading, knobs: Mapping[str, int]) -> Iterable[str]:
    if trial.played:
        yield (
            f"on the way to the first update, {trial.played:,} env steps were recorded ones, "
            "played back; --real-env steps the env itself"
        )
    if trial.brought:
        yield (
            "an evaluation or a checkpoint that comes every so often was brought forward in the "
            "trial, so that what it takes is in this plan"
        )
    if LENGTH in knobs and trial.run is not None:
        about = "" if trial.run.exact else "about "
        yield f"the run ends after {about}{knobs[LENGTH]:,} env steps: {trial.run.where}"
    elif LENGTH in knobs:
        yield (
            "buffers that were still filling are taken to be filled: that is after "
            f"{knobs[LENGTH]:,} env steps; where the run ends before, say so with --set {LENGTH}=N"
        )
    if trial.ended is TrialEnd.TIME:
        yield (
            f"the trial ended after {trial.seconds:.0f} s, with {trial.updates:,} updates and "
            f"{trial.cycles:,} whole cycles seen: what comes later is not in this plan"
        )
    if trial.ended is TrialEnd.MEMORY:
        yield (
            "the trial was ended when it had taken all the memory that it may, after "
            f"{trial.env_steps:,} env steps and {trial.updates:,} updates: the peak is at least "
            "this"
        )
