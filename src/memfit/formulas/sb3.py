"""From a stable-baselines3 run's facts and readings to the rows of its ledger."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from memfit.formulas.arrays import filled_rows, row_bytes, rows
from memfit.model import (
    NO_SLOPE,
    Component,
    Evidence,
    EvidenceKind,
    Kind,
    Ledger,
    Place,
    Readings,
    RunSpec,
    Size,
    Slope,
    const,
    knob,
    maximum,
    minimum,
)

ALWAYS = ("start", "build", "rollout", "update", "evaluate", "save")
BUILT = ALWAYS[1:]
TRAINING = ALWAYS[2:]
MINIBATCH = "update.minibatch"
FLATTEN = "update.flatten"


def ledger(spec: RunSpec, readings: Readings) -> Ledger:
    """Every component of the run, in the order in which a person would name them."""
    phases = {"start", "build", "rollout", "update"}
    phases |= {"save"} if any(c.kind == "save" for c in spec.callbacks) else set()
    phases |= {"evaluate"} if any(c.kind == "evaluate" for c in spec.callbacks) else set()
    components = [
        *_base(spec, readings),
        *_networks(spec),
        *_envs(spec, readings),
        *_buffers(spec, readings),
        *_update(spec, readings),
        *_callbacks(spec, readings),
    ]
    components.extend(_slack(spec, readings, components))
    kept = (_only(c, phases) for c in components)
    return Ledger(components=tuple(c for c in kept if c.phases), knobs=dict(spec.knobs))


def batch_unit(spec: RunSpec, readings: Readings) -> Size:
    """The samples of one minibatch, as a size over the run's knobs."""
    if not spec.on_policy:
        return knob("batch_size")
    rollout = knob("n_steps") * knob("n_envs")
    if readings.whole_rollout or "batch_size" not in spec.knobs:
        return rollout
    return minimum(knob("batch_size"), rollout)


def line(slope: Slope, unit: Size) -> Size:
    return unit * slope.per_unit + slope.fixed


def _only(component: Component, phases: set[str]) -> Component:
    kept = tuple(p for p in component.phases if p.split(".")[0] in phases)
    return replace(component, phases=kept)


def _measured(where: str) -> Evidence:
    return Evidence(kind=EvidenceKind.MEASURED, where=where)


def _derived(where: str) -> Evidence:
    return Evidence(kind=EvidenceKind.DERIVED, where=where)


def _probed(where: str) -> Evidence:
    return Evidence(kind=EvidenceKind.PROBED, where=where)


def _known(spec: RunSpec) -> int:
    return sum(n.parameter_bytes for n in spec.networks)


def _optimizer_bytes(spec: RunSpec) -> int:
    return sum(n.optimizer_bytes for n in spec.networks)


def _gradient_bytes(spec: RunSpec) -> int:
    return sum(n.gradient_bytes for n in spec.networks)


def _env_bytes(spec: RunSpec, readings: Readings) -> int:
    return 0 if readings.workers else readings.env_each * spec.knobs["n_envs"]


def _base(spec: RunSpec, readings: Readings) -> Iterator[Component]:
    """The interpreter and its libraries: imports, what building loads, and first use."""
    workers = readings.workers.started_bytes if readings.workers else 0
    stopped = readings.stopped - workers
    base = min(readings.base or stopped, stopped)
    built = max(0, stopped - base - _known(spec) - _env_bytes(spec, readings))
    yield Component(
        name="base.imports",
        kind=Kind.BASE,
        size=const(base),
        phases=ALWAYS,
        evidence=_measured("a child that only imports the run's libraries (PSS)"),
    )
    yield Component(
        name="base.build",
        kind=Kind.BASE,
        size=const(built),
        phases=BUILT,
        evidence=_measured("the script's process where it would learn, less the rows named here"),
    )
    used = readings.warm - readings.retained - workers - base - built
    used -= _known(spec) + _env_bytes(spec, readings) + _optimizer_bytes(spec)
    yield Component(
        name="base.first_use",
        kind=Kind.BASE,
        size=const(max(0, used)),
        phases=TRAINING,
        evidence=_measured("the same process after one small update: code pages, thread pools"),
    )


def _networks(spec: RunSpec) -> Iterator[Component]:
    for network in spec.networks:
        where = f"model.policy ({spec.policy})"
        yield Component(
            name=f"{network.name}.parameters",
            kind=Kind.PARAMETERS,
            size=const(network.parameter_bytes),
            phases=BUILT,
            evidence=_derived(where),
        )
        if network.gradient_bytes:
            yield Component(
                name=f"{network.name}.gradients",
                kind=Kind.GRADIENTS,
                size=const(network.gradient_bytes),
                phases=TRAINING,
                evidence=_derived(f"{where}: one for each trained parameter"),
            )
        if network.optimizer_bytes:
            yield Component(
                name=f"{network.name}.optimizer",
                kind=Kind.OPTIMIZER,
                size=const(network.optimizer_bytes),
                phases=TRAINING,
                evidence=_derived(f"{network.optimizer}'s state after its first step"),
            )


def _envs(spec: RunSpec, readings: Readings) -> Iterator[Component]:
    kind = spec.vec_env.kind if spec.vec_env else "env"
    if readings.workers:
        workers = readings.workers
        how = spec.vec_env.start_method if spec.vec_env else ""
        yield Component(
            name="workers.private",
            kind=Kind.WORKER,
            place=Place.WORKERS,
            size=knob("n_envs") * workers.each_bytes,
            phases=BUILT,
            evidence=_measured(
                f"{workers.started} real {how} worker(s) of {kind} (private pages), times n_envs"
            ),
        )
        yield Component(
            name="workers.helpers",
            kind=Kind.WORKER,
            place=Place.WORKERS,
            size=const(workers.shared_bytes),
            phases=BUILT,
            evidence=_measured("the fork server and resource tracker (PSS)"),
        )
    elif readings.env_each:
        yield Component(
            name="env.state",
            kind=Kind.ENV_STATE,
            size=knob("n_envs") * readings.env_each,
            phases=BUILT,
            evidence=_measured(f"one more env of {kind}, built and reset"),
        )


def _buffers(spec: RunSpec, readings: Readings) -> Iterator[Component]:
    for array in spec.arrays:
        full = rows(spec) * row_bytes(array)
        filled = filled_rows(spec) * row_bytes(array)
        yield Component(
            name=array.name,
            kind=Kind.BUFFER,
            size=filled,
            reserved=None if spec.on_policy else full,
            phases=TRAINING,
            evidence=_derived(f"model.{array.name}: {array.dtype} {_shape(array.shape)}"),
        )
    if readings.flattened and spec.arrays:
        # A buffer of one env is flattened without a copy.
        largest = max(spec.arrays, key=lambda a: row_bytes(a).evaluate(spec.knobs))
        yield Component(
            name="rollout_buffer.flatten_copy",
            kind=Kind.COPIES,
            size=minimum(knob("n_envs") - 1, 1) * (rows(spec) * row_bytes(largest)),
            phases=(FLATTEN,),
            evidence=_derived("RolloutBuffer.get: swap_and_flatten copies one array at a time"),
        )


def _shape(shape: tuple[int | str, ...]) -> str:
    return "(" + ", ".join(str(n) for n in shape) + ")"


def _update(spec: RunSpec, readings: Readings) -> Iterator[Component]:
    """What is alive while a minibatch goes forward and backward."""
    unit = batch_unit(spec, readings)
    if spec.on_policy:
        yield Component(
            name="update.indices",
            kind=Kind.COPIES,
            size=knob("n_steps") * knob("n_envs") * 8,
            phases=(MINIBATCH,),
            evidence=_derived("RolloutBuffer.get: a permutation of int64"),
        )
    parts = [
        (
            "minibatch.observations",
            Kind.COPIES,
            _minibatch(spec),
            _derived("the gathered minibatch as tensors, in the space's own dtype"),
        ),
        (
            "policy.activations",
            Kind.ACTIVATIONS,
            readings.activations or NO_SLOPE,
            _derived("fake-tensor trace of the policy: tensors saved for backward"),
        ),
    ]
    rest = Slope(fixed=readings.live.fixed - _gradient_bytes(spec), per_unit=readings.live.per_unit)
    for name, kind, slope, evidence in parts:
        if slope.at(readings.batch) > rest.at(readings.batch):
            continue  # not all of it is alive at the peak: it stays with what was recorded
        rest = Slope(fixed=rest.fixed - slope.fixed, per_unit=rest.per_unit - slope.per_unit)
        if slope.at(readings.batch) > 0:
            size = line(slope, unit)
            yield Component(name=name, kind=kind, size=size, phases=(MINIBATCH,), evidence=evidence)
    yield Component(
        name="update.scratch",
        kind=Kind.SCRATCH,
        size=maximum(line(rest, unit), 0),
        phases=(MINIBATCH,),
        evidence=_scratch_evidence(readings),
    )


def _scratch_evidence(readings: Readings) -> Evidence:
    if readings.assumed:
        where = "as much again as the policy saves for backward: no small update could be run"
        return Evidence(kind=EvidenceKind.ASSUMED, where=where)
    return _probed("recorded allocations of two small updates, extrapolated to the batch")


def _minibatch(spec: RunSpec) -> Slope:
    """One minibatch's observations; off-policy also the next ones."""
    each = 0
    for part in spec.observation:
        elements = part.itemsize
        for n in part.shape:
            elements *= int(n)
        each += elements
    return Slope(fixed=0, per_unit=each if spec.on_policy else 2 * each)


def _slack(spec: RunSpec, readings: Readings, components: list[Component]) -> Iterator[Component]:
    """What malloc holds beyond what is asked for, at each moment of the replay."""
    unit = batch_unit(spec, readings)
    workers = readings.workers.started_bytes if readings.workers else 0
    so_far = Ledger(components=tuple(components), knobs=spec.knobs)
    pieces = {c.name: c for c in components}
    unwanted = sum(so_far.bytes_of(pieces[name]) for name in pieces if name.startswith("workers."))
    for moment, growth in readings.growth.items():
        asked = sum(so_far.bytes_of(c) for c in components if c.alive_in(moment)) - unwanted
        if not spec.on_policy:
            asked -= sum(so_far.bytes_of(c) for c in components if c.kind is Kind.BUFFER)
        here = readings.warm - workers + growth.at(readings.batch) - asked
        more = growth.per_unit - (readings.live.per_unit if moment == MINIBATCH else 0)
        size = maximum(unit * more + (here - more * readings.batch), 0)
        yield Component(
            name=f"allocator.slack.{moment.split('.')[-1]}",
            kind=Kind.FRAGMENTATION,
            size=size,
            phases=("rollout", "evaluate", "save") if moment == "rollout" else (moment,),
            evidence=_probed("the update's allocations replayed through this machine's malloc"),
        )


def _callbacks(spec: RunSpec, readings: Readings) -> Iterator[Component]:
    kinds = {c.kind for c in spec.callbacks}
    if "evaluate" in kinds:
        yield Component(
            name="evaluate.env",
            kind=Kind.ENV_STATE,
            size=const(readings.evaluate_bytes),
            phases=("rollout", "update", "evaluate", "save"),
            evidence=_measured("the evaluation env, reset and stepped"),
        )
    if "save" in kinds:
        yield Component(
            name="save.model",
            kind=Kind.COPIES,
            size=const(readings.save_bytes),
            phases=("save",),
            evidence=_measured("one save of the model into a scratch folder"),
        )
    if any(c.saves_replay_buffer for c in spec.callbacks) and not spec.on_policy and spec.arrays:
        largest = max(spec.arrays, key=lambda a: row_bytes(a).evaluate(spec.knobs))
        yield Component(
            name="save.replay_copy",
            kind=Kind.COPIES,
            size=rows(spec) * row_bytes(largest) * readings.pickled_copies,
            phases=("save",),
            evidence=_measured(
                f"one array pickled here: {readings.pickled_copies} copies of it are held"
            ),
        )
