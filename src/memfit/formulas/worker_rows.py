"""Rows of a run's envs, and of the processes beside the one that trains."""

from __future__ import annotations

from collections.abc import Iterator

from memfit.formulas.shared_rows import BUILT, measured
from memfit.model import (
    Component,
    Kind,
    OtherProcesses,
    Place,
    Readings,
    RunSpec,
    Size,
    WorkerReading,
    const,
    knob,
)


def env_rows(spec: RunSpec, readings: Readings) -> Iterator[Component]:
    """What envs hold, in the process that trains or in others; and what other processes hold."""
    kind = spec.vec_env.kind if spec.vec_env else "env"
    if readings.workers:
        how = spec.vec_env.start_method if spec.vec_env else ""
        yield from _known_workers(readings.workers, kind, how)
    elif readings.env_each:
        yield Component(
            name="env.state",
            kind=Kind.ENV_STATE,
            size=knob("n_envs") * readings.env_each,
            phases=BUILT,
            evidence=measured(f"one more env of {kind}, built and reset"),
        )
    for group in readings.others:
        yield _others(group, spec.knobs.get("n_envs", 0))


def _known_workers(workers: WorkerReading, kind: str, how: str) -> Iterator[Component]:
    real = f"{workers.started} real {how} worker(s) of {kind}".replace("  ", " ")
    rows = [
        ("private", knob("n_envs") * workers.each_bytes, f"{real} (private pages), times n_envs"),
        ("helpers", const(workers.shared_bytes), "the fork server and resource tracker"),
    ]
    if workers.envs:
        each, own = knob("n_envs") * workers.env_bytes, workers.started * workers.each_bytes
        rows[:1] = [
            ("envs", each, f"one more env of {kind}, built and reset"),
            ("private", const(own), f"{real} (private pages, envs apart)"),
        ]
    for name, size, where in rows:
        yield _row(name, size, where)


def _others(group: OtherProcesses, envs: int) -> Component:
    """Processes of no vector env that is known; those that share out the envs grow with them."""
    count = group.count
    if group.shared:
        return Component(
            name=f"shared.{group.name}",
            kind=Kind.BUFFER,
            place=Place.SHARED,
            size=const(group.private_bytes),
            phases=BUILT,
            evidence=measured(f"pages in shared memory: {group.what}"),
        )
    where = f"{count} process(es) that the run started: {group.what} (private pages)"
    each = f"{envs // max(1, count)} env(s) each"
    if group.for_envs and envs and (count == envs or (count > 1 and envs % count == 0)):
        size = knob("n_envs") * (group.private_bytes // envs)
        return _row(group.name, size, f"{where}, {each}: taken to grow with n_envs")
    return _row(group.name, const(group.private_bytes), where)


def _row(name: str, size: Size, where: str) -> Component:
    return Component(
        name=f"workers.{name}",
        kind=Kind.WORKER,
        place=Place.WORKERS,
        size=size,
        phases=BUILT,
        evidence=measured(where),
    )
