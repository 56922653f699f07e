"""From a run's facts and readings to the rows of its ledger, for every library that is driven."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from memfit.formulas import dropin_arrays
from memfit.formulas.array_bytes import (
    collects,
    fixed_bytes,
    reserved,
    resident,
    row_bytes,
    scaled,
    unit,
    width,
)
from memfit.formulas.shared_rows import (
    BUILT,
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
    knob,
    maximum,
    parse_size,
    phase_of,
)
from memfit.units import format_bytes


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
        *_envs(spec, readings),
        *_arrays(spec),
        *_windows(spec),
        *_graphs(spec, readings),
        *_update(spec, readings, wording),
        *_callbacks(spec, readings),
    ]
    slack = list(_slack(spec, readings, components))
    phases = {"start", "build", "update"} | ({"rollout"} if collects(spec) else set())
    phases |= {c.kind for c in spec.callbacks}
    for component in (*_given_way(spec, readings, components), *slack):
        kept = only(component, phases)
        if kept.phases:
            yield kept


def _workers(readings: Readings) -> int:
    return readings.workers.started_bytes if readings.workers else 0


def _warm(spec: RunSpec, readings: Readings) -> int:
    """The process that was warm, less what has rows of its own: workers and shared memory.

    Mappings of shared memory are in use since the first step.
    """
    shared = (a for a in spec.arrays if a.mapped and a.place is Place.SHARED)
    used = sum(resident(a, spec.knobs).evaluate(spec.knobs) for a in shared)
    return readings.warm - _workers(readings) - used


def _base(spec: RunSpec, readings: Readings, wording: Wording) -> Iterator[Component]:
    parameters = sum(n.parameter_bytes for n in spec.networks)
    optimizers = sum(n.optimizer_bytes for n in spec.networks)
    stopped = readings.stopped - _workers(readings)
    imports = min(readings.base or stopped, stopped)
    envs = 0 if readings.workers else readings.env_each * spec.knobs.get("n_envs", 0)
    named = parameters + envs
    built = max(0, stopped - imports - named)
    used = _warm(spec, readings) - readings.retained - imports - built - named - optimizers
    yield from base_rows(imports=imports, built=built, used=used, where=wording.built)


def _envs(spec: RunSpec, readings: Readings) -> Iterator[Component]:
    kind = spec.vec_env.kind if spec.vec_env else "env"
    if readings.workers:
        workers = readings.workers
        how = spec.vec_env.start_method if spec.vec_env else ""
        real = f"{workers.started} real {how} worker(s) of {kind}".replace("  ", " ")
        rows = [
            (
                "private",
                knob("n_envs") * workers.each_bytes,
                f"{real} (private pages), times n_envs",
            ),
            ("helpers", const(workers.shared_bytes), "the fork server and resource tracker"),
        ]
        if workers.envs:
            each, own = knob("n_envs") * workers.env_bytes, workers.started * workers.each_bytes
            rows[:1] = [
                ("envs", each, f"one more env of {kind}, built and reset"),
                ("private", const(own), f"{real} (private pages, envs apart)"),
            ]
        for name, size, where in rows:
            yield Component(
                name=f"workers.{name}",
                kind=Kind.WORKER,
                place=Place.WORKERS,
                size=size,
                phases=BUILT,
                evidence=measured(where),
            )
    elif readings.env_each:
        yield Component(
            name="env.state",
            kind=Kind.ENV_STATE,
            size=knob("n_envs") * readings.env_each,
            phases=BUILT,
            evidence=measured(f"one more env of {kind}, built and reset"),
        )


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


def _malloc_rows(spec: RunSpec, components: Sequence[Component]) -> Ledger:
    """The rows that replays of the run's allocations hold: not workers, nor what is mapped."""
    mapped = {a.name for a in spec.arrays if a.mapped}
    mapped |= {window.name for window in spec.windows}
    kept = (c for c in components if c.kind is not Kind.WORKER and c.name not in mapped)
    return Ledger(components=tuple(kept), knobs=spec.knobs)


def _slack(
    spec: RunSpec, readings: Readings, components: Sequence[Component]
) -> Iterator[Component]:
    """What malloc holds beyond what is asked for, at each moment of the replay."""
    named = _malloc_rows(spec, components)
    samples = unit(spec)
    points = [dict(spec.knobs), {**spec.knobs, **scaled(spec, times=2)}]
    units = [samples.evaluate(knobs) for knobs in points]
    warm = _warm(spec, readings)
    for moment, growth in readings.growth.items():
        held = [
            warm + growth.at(n) - _alive(named, moment, knobs)
            for n, knobs in zip(units, points, strict=True)
        ]
        more = (held[1] - held[0]) // (units[1] - units[0]) if units[1] > units[0] else 0
        yield Component(
            name=f"allocator.slack.{moment.split('.')[-1]}",
            kind=Kind.FRAGMENTATION,
            size=maximum(samples * more + (held[0] - more * units[0]), 0),
            phases=("rollout", "evaluate", "save") if moment == "rollout" else (moment,),
            evidence=probed("the run's allocations replayed through this machine's malloc"),
        )


def _alive(ledger: Ledger, moment: str, knobs: dict[str, int]) -> int:
    return sum(c.size.evaluate(knobs) for c in ledger.components if c.alive_in(moment))


def _given_way(
    spec: RunSpec, readings: Readings, components: Sequence[Component]
) -> Iterator[Component]:
    """The rows, with less scratch where all together say more than the allocations came to."""
    moment = spec.update.moment
    less = 0
    if (growth := readings.growth.get(moment)) is not None:
        named = _alive(_malloc_rows(spec, components), moment, dict(spec.knobs))
        less = min(0, _warm(spec, readings) + growth.at(readings.unit) - named)
    for c in components:
        if less and c.kind is Kind.SCRATCH and phase_of(c.phases[0]) == phase_of(moment):
            yield replace(c, size=maximum(c.size + less, 0))
        else:
            yield c
