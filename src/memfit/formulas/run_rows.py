"""From a run's facts and readings to the rows of its ledger, for every library that is driven."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from memfit.formulas import dropin_arrays
from memfit.formulas.allocator_slack import with_slack
from memfit.formulas.array_bytes import (
    collects,
    fixed_bytes,
    reserved,
    resident,
    row_bytes,
    width,
)
from memfit.formulas.shared_rows import (
    TRAINING,
    base_rows,
    derived,
    gradient_bytes,
    measured,
    network_rows,
    only,
    probed,
    update_rows,
)
from memfit.formulas.worker_rows import env_rows
from memfit.model import (
    NO_SLOPE,
    Component,
    Evidence,
    EvidenceKind,
    Kind,
    Ledger,
    NetworkSpec,
    Place,
    Readings,
    RunSpec,
    Size,
    Slope,
    WindowSpec,
    const,
    parse_size,
)
from memfit.units import MIB, format_bytes

_MOST_PARTS, _LEAST_PART = 6, 4 * MIB  # of what building loads: rows that have a name


@dataclass(frozen=True, kw_only=True)
class Wording:
    """How a library's rows are named, and how their evidence is worded.

    A sample of a minibatch has so many `observations`; where `inputs_are_saved`, they are among
    the tensors that are saved for backward.
    """

    built: str
    network: Callable[[NetworkSpec], str]
    parameters: str = ""
    minibatch: str = "minibatch.inputs"
    minibatch_where: str = "what the networks are called with"
    observations: int = 1
    activations: str = "update.activations"
    activations_where: str = "two small forward passes: tensors saved for backward, inputs apart"
    inputs_are_saved: bool = True


def run_ledger(spec: RunSpec, rows: Iterable[Component]) -> Ledger:
    """The ledger of a run that has these rows."""
    return Ledger(
        components=tuple(rows),
        knobs=dict(spec.knobs),
        length=spec.length,
        first_update=parse_size(spec.first_update, spec.knobs),
    )


def run_rows(spec: RunSpec, readings: Readings, wording: Wording) -> Iterator[Component]:
    """Every component of a run, in the order in which a person would name them."""
    components = [
        *_base(spec, readings, wording),
        *network_rows(spec, wording.network, wording.parameters),
        *env_rows(spec, readings),
        *_arrays(spec),
        *_windows(spec),
        *_graphs(spec, readings),
        *_update(spec, readings, wording),
        *_callbacks(spec, readings),
    ]
    components = with_slack(spec, readings, components, _warm(spec, readings))
    phases = {"start", "build", "update"} | ({"rollout"} if collects(spec) else set())
    phases |= {c.kind for c in spec.callbacks}
    for component in components:
        kept = only(component, phases)
        if kept.phases:
            yield kept


def _warm(spec: RunSpec, readings: Readings) -> int:
    """The process that was warm, less what has rows of its own: workers and shared memory.

    Mappings of shared memory are in use since the first step.
    """
    shared = (a for a in spec.arrays if a.mapped and a.place is Place.SHARED)
    used = sum(resident(a, spec.knobs).evaluate(spec.knobs) for a in shared)
    return readings.warm - readings.processes_bytes - used


def _base(spec: RunSpec, readings: Readings, wording: Wording) -> Iterator[Component]:
    parameters = sum(n.parameter_bytes for n in spec.networks)
    optimizers = sum(n.optimizer_bytes for n in spec.networks)
    stopped = readings.stopped - readings.processes_bytes
    imports = min(readings.base or stopped, stopped)
    envs = 0 if readings.workers else readings.env_each * spec.knobs.get("n_envs", 0)
    named = parameters + envs
    built = max(0, stopped - imports - named)
    used = _warm(spec, readings) - readings.retained - imports - built - named - optimizers
    parts = dict(built_parts(readings))
    yield from base_rows(imports=imports, built=built, used=used, where=wording.built, parts=parts)


def built_parts(readings: Readings) -> Iterator[tuple[str, tuple[int, str]]]:
    """Of what building a run loads, the imports and the arrays that are worth a row."""
    for name, size in _largest(readings.imported):
        why = f"what importing {name} added beyond the libraries' own imports"
        yield f"imported.{name}", (size, f"{why} (resident pages)")
    for path, size in _largest(readings.held):
        yield f"held.{path}", (size, f"the script's {path} where it would learn (resident pages)")


def _largest(parts: Mapping[str, int]) -> list[tuple[str, int]]:
    ordered = sorted(parts.items(), key=lambda part: -part[1])
    return [part for part in ordered[:_MOST_PARTS] if part[1] >= _LEAST_PART]


def _arrays(spec: RunSpec) -> Iterator[Component]:
    for array in spec.arrays:
        yield Component(
            name=array.name,
            kind=Kind(array.kind),
            size=resident(array, spec.knobs),
            reserved=None if array.filled is None else reserved(array, spec.knobs),
            phases=array.phases,
            place=array.place,
            evidence=Evidence(kind=array.evidence, where=array.where),
        )


def _windows(spec: RunSpec) -> Iterator[Component]:
    for window in spec.windows:
        yield Component(
            name=window.name,
            kind=Kind.BUFFER,
            size=_window_bytes(spec, window),
            phases=TRAINING,
            evidence=derived(_window_words(window)),
        )


def _window_bytes(spec: RunSpec, window: WindowSpec) -> Size:
    one = {"length": window.length, "row_bytes": window.row_bytes, "new": window.new}
    if spec.on_policy:
        return dropin_arrays.window_rollout(**one)
    return dropin_arrays.window_replay(**one, n_envs=spec.knobs["n_envs"], episodes=const(0))


def _window_words(window: WindowSpec) -> str:
    if window.new == window.length:
        return f"model.{window.name}: each observation once"
    more = format_bytes(window.length * window.row_bytes)
    return (
        f"model.{window.name}: {window.new} of {window.length} rows are new a step and stored; "
        f"each episode that ends adds up to {more}"
    )


def _graphs(spec: RunSpec, readings: Readings) -> Iterator[Component]:
    update = spec.update
    if not update.records_gradients:
        return
    steps = parse_size(update.steps, spec.knobs)
    samples = parse_size(update.rollout, spec.knobs) * steps
    size = samples * readings.graph.per_unit + steps * readings.graph.fixed
    why = "the rollout records gradients, so each step keeps these"
    rows: list[tuple[str, tuple[str, ...], str]] = [("graph", TRAINING, why)]
    if update.keeps_last_graph:
        last = "the last iteration's, until the next is complete"
        rows.append(("last_graph", ("rollout",), last))
    for name, phases, why in rows:
        yield Component(
            name=f"rollout.{name}",
            kind=Kind.ACTIVATIONS,
            size=size,
            phases=phases,
            evidence=probed(f"recorded allocations of two rollout steps: {why}"),
        )


def _update(spec: RunSpec, readings: Readings, wording: Wording) -> Iterator[Component]:
    """What is alive while a minibatch goes forward and backward."""
    samples = width(spec)
    inputs = wording.observations * sum(map(fixed_bytes, spec.observation))
    traced = readings.activations or NO_SLOPE
    saved = inputs if wording.inputs_are_saved else 0
    parts = [
        (
            wording.minibatch,
            Kind.COPIES,
            Slope(fixed=0, per_unit=inputs),
            derived(wording.minibatch_where),
        ),
        (
            wording.activations,
            Kind.ACTIVATIONS,
            Slope(fixed=traced.fixed, per_unit=max(0, traced.per_unit - saved)),
            derived(wording.activations_where),
        ),
    ]
    live = readings.live
    yield from update_rows(
        parts,
        Slope(fixed=live.fixed - gradient_bytes(spec), per_unit=live.per_unit),
        samples=samples,
        now=samples.evaluate(spec.knobs),
        phases=(spec.update.moment,),
        scratch=_scratch_evidence(readings),
    )


def _scratch_evidence(readings: Readings) -> Evidence:
    if readings.assumed:
        where = "as much again as the policy saves for backward: no small update could be run"
        return Evidence(kind=EvidenceKind.ASSUMED, where=where)
    return probed("recorded allocations of two small updates, extrapolated to the batch")


def _callbacks(spec: RunSpec, readings: Readings) -> Iterator[Component]:
    kinds = {c.kind for c in spec.callbacks}
    if "evaluate" in kinds:
        yield Component(
            name="evaluate.env",
            kind=Kind.ENV_STATE,
            size=const(readings.evaluate_bytes),
            phases=("rollout", "update", "evaluate", "save"),
            evidence=measured("the evaluation env, reset and stepped"),
        )
    if "save" in kinds:
        yield Component(
            name="save.model",
            kind=Kind.COPIES,
            size=const(readings.save_bytes),
            phases=("save",),
            evidence=measured("one save of the model into a scratch folder"),
        )
    if any(c.saves_replay_buffer for c in spec.callbacks) and not spec.on_policy and spec.arrays:
        largest = max(spec.arrays, key=lambda a: row_bytes(a, spec.knobs).evaluate(spec.knobs))
        yield Component(
            name="save.replay_copy",
            kind=Kind.COPIES,
            size=reserved(largest, spec.knobs) * readings.pickled_copies,
            phases=("save",),
            evidence=measured(
                f"one array pickled here: {readings.pickled_copies} copies of it are held"
            ),
        )
