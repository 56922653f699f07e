"""From a stable-baselines3 run's facts and readings to the rows of its ledger."""

from __future__ import annotations

from collections.abc import Iterator

from memfit.formulas import dropin_arrays
from memfit.formulas.buffer_arrays import filled_rows, row_bytes, rows
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
    Place,
    Readings,
    RunSpec,
    Size,
    Slope,
    WindowSpec,
    const,
    knob,
    maximum,
    minimum,
)
from memfit.units import format_bytes

MINIBATCH = "update.minibatch"
FLATTEN = "update.flatten"


def ledger(spec: RunSpec, readings: Readings) -> Ledger:
    """Every component of the run, in the order in which a person would name them."""
    phases = {"start", "build", "rollout", "update"}
    phases |= {"save"} if any(c.kind == "save" for c in spec.callbacks) else set()
    phases |= {"evaluate"} if any(c.kind == "evaluate" for c in spec.callbacks) else set()
    components = [
        *_base(spec, readings),
        *network_rows(spec, lambda network: f"model.policy ({spec.policy})"),
        *_envs(spec, readings),
        *_buffers(spec, readings),
        *_update(spec, readings),
        *_callbacks(spec, readings),
    ]
    components.extend(_slack(spec, readings, components))
    kept = (only(c, phases) for c in components)
    return Ledger(components=tuple(c for c in kept if c.phases), knobs=dict(spec.knobs))


def batch_unit(spec: RunSpec, readings: Readings) -> Size:
    """The samples that one update works on at once, as a size over the run's knobs."""
    if not spec.on_policy:
        return knob("batch_size")
    rollout = knob("n_steps") * knob("n_envs")
    if readings.whole_rollout or "batch_size" not in spec.knobs:
        return rollout
    minibatch = minimum(knob("batch_size"), rollout)
    if "micro_batch_size" in spec.knobs:
        return minimum(minibatch, knob("micro_batch_size"))
    return minibatch


def _known(spec: RunSpec) -> int:
    return sum(n.parameter_bytes for n in spec.networks)


def _optimizer_bytes(spec: RunSpec) -> int:
    return sum(n.optimizer_bytes for n in spec.networks)


def _env_bytes(spec: RunSpec, readings: Readings) -> int:
    return 0 if readings.workers else readings.env_each * spec.knobs["n_envs"]


def _base(spec: RunSpec, readings: Readings) -> Iterator[Component]:
    workers = readings.workers.started_bytes if readings.workers else 0
    stopped = readings.stopped - workers
    imports = min(readings.base or stopped, stopped)
    named = _known(spec) + _env_bytes(spec, readings)
    built = max(0, stopped - imports - named)
    used = readings.warm - readings.retained - workers - imports - built
    used -= named + _optimizer_bytes(spec)
    where = "the script's process where it would learn"
    yield from base_rows(imports=imports, built=built, used=used, where=where)


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
            evidence=measured(
                f"{workers.started} real {how} worker(s) of {kind} (private pages), times n_envs"
            ),
        )
        yield Component(
            name="workers.helpers",
            kind=Kind.WORKER,
            place=Place.WORKERS,
            size=const(workers.shared_bytes),
            phases=BUILT,
            evidence=measured("the fork server and resource tracker (PSS)"),
        )
    elif readings.env_each:
        yield Component(
            name="env.state",
            kind=Kind.ENV_STATE,
            size=knob("n_envs") * readings.env_each,
            phases=BUILT,
            evidence=measured(f"one more env of {kind}, built and reset"),
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
            evidence=derived(f"model.{array.name}: {array.dtype} {_shape(array.shape)}"),
        )
    for window in spec.windows:
        yield Component(
            name=window.name,
            kind=Kind.BUFFER,
            size=_window_bytes(spec, window),
            phases=TRAINING,
            evidence=derived(_window_words(window)),
        )
    if readings.flattened and spec.arrays:
        # A buffer of one env is flattened without a copy.
        largest = max(spec.arrays, key=lambda a: row_bytes(a).evaluate(spec.knobs))
        yield Component(
            name="rollout_buffer.flatten_copy",
            kind=Kind.COPIES,
            size=minimum(knob("n_envs") - 1, 1) * (rows(spec) * row_bytes(largest)),
            phases=(FLATTEN,),
            evidence=derived("RolloutBuffer.get: swap_and_flatten copies one array at a time"),
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
            evidence=derived("RolloutBuffer.get: a permutation of int64"),
        )
    parts = [
        (
            "minibatch.observations",
            Kind.COPIES,
            _minibatch(spec),
            derived("the gathered minibatch as tensors, in the space's own dtype"),
        ),
        (
            "policy.activations",
            Kind.ACTIVATIONS,
            readings.activations or NO_SLOPE,
            derived("fake-tensor trace of the policy: tensors saved for backward"),
        ),
    ]
    live = readings.live
    yield from update_rows(
        parts,
        Slope(fixed=live.fixed - gradient_bytes(spec), per_unit=live.per_unit),
        samples=unit,
        now=readings.batch,
        phases=(MINIBATCH,),
        scratch=_scratch_evidence(readings),
    )


def _scratch_evidence(readings: Readings) -> Evidence:
    if readings.assumed:
        where = "as much again as the policy saves for backward: no small update could be run"
        return Evidence(kind=EvidenceKind.ASSUMED, where=where)
    return probed("recorded allocations of two small updates, extrapolated to the batch")


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
    # Replays have all arrays of a rollout; windows and replay buffers are no matter of malloc's.
    windows = {window.name for window in spec.windows}
    unwanted += sum(
        so_far.bytes_of(c)
        for c in components
        if c.kind is Kind.BUFFER and (not spec.on_policy or c.name in windows)
    )
    for moment, growth in readings.growth.items():
        asked = sum(so_far.bytes_of(c) for c in components if c.alive_in(moment)) - unwanted
        here = readings.warm - workers + growth.at(readings.batch) - asked
        more = growth.per_unit - (readings.live.per_unit if moment == MINIBATCH else 0)
        size = maximum(unit * more + (here - more * readings.batch), 0)
        yield Component(
            name=f"allocator.slack.{moment.split('.')[-1]}",
            kind=Kind.FRAGMENTATION,
            size=size,
            phases=("rollout", "evaluate", "save") if moment == "rollout" else (moment,),
            evidence=probed("the update's allocations replayed through this machine's malloc"),
        )


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
        largest = max(spec.arrays, key=lambda a: row_bytes(a).evaluate(spec.knobs))
        yield Component(
            name="save.replay_copy",
            kind=Kind.COPIES,
            size=rows(spec) * row_bytes(largest) * readings.pickled_copies,
            phases=("save",),
            evidence=measured(
                f"one array pickled here: {readings.pickled_copies} copies of it are held"
            ),
        )
