"""What a run demands of Ray, so that its scheduler puts it where it fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memfit import plan
from memfit.errors import MissingExtra, UsageError
from memfit.integrations.ray.worker_cost import worker_bytes
from memfit.model import MemoryRequest, Plan
from memfit.model.memory_request import request_of


def paste(request: MemoryRequest) -> str:
    """Arguments for a remote function or actor, and for trials of Tune."""
    amount = f"{request.memory_bytes:_}"
    return (
        f"@ray.remote(memory={amount})\n"
        f'tune.with_resources(train, {{"cpu": 1, "memory": {amount}}})\n'
    )


@dataclass(frozen=True, kw_only=True)
class Demand:
    """The memory and processors of one run, in the words of each part of Ray.

    `memory_bytes` is the plan's upper bound and its page tables, with `worker_bytes`: what a
    process of Ray holds itself, beyond a plain Python.
    """

    peak_bytes: int
    upper_bytes: int
    memory_bytes: int
    worker_bytes: int
    cpus: int

    @property
    def remote(self) -> dict[str, Any]:
        """For `@ray.remote(**...)` and `.options(**...)`."""
        return {"memory": self.memory_bytes, "num_cpus": self.cpus}

    @property
    def tune(self) -> dict[str, float]:
        """For `tune.with_resources(train, ...)`."""
        return {"memory": self.memory_bytes, "cpu": self.cpus}

    @property
    def bundle(self) -> dict[str, float]:
        """For `placement_group([...])` and `PlacementGroupFactory([...])`."""
        return {"memory": self.memory_bytes, "CPU": self.cpus}


def resources(
    target: str | Path,
    *,
    args: Sequence[str] = (),
    module: bool = False,
    cpus: int | None = None,
    probe: bool = False,
    timeout: float = 120.0,
    network: bool = False,
    **knobs: int,
) -> Demand:
    """Plan a target with these settings, and say what to demand of Ray for it.

    Options are those of `memfit.plan`; a run with worker processes demands a CPU for each, unless
    `cpus` says otherwise.
    """
    if cpus is not None and (type(cpus) is not int or cpus < 0):
        raise UsageError(f"cpus={cpus!r}: give a whole number")
    worker = worker_bytes()
    if not worker:
        raise MissingExtra("demands of Ray need it: pip install 'memfit[ray]'")
    found = plan(
        target,
        args=args,
        module=module,
        knobs=knobs,
        probe=probe,
        timeout=timeout,
        network=network,
    )
    return demand_of(found, worker, cpus=cpus)


def demand_of(found: Plan, worker: int, *, cpus: int | None = None) -> Demand:
    """What a plan's run demands where a process of Ray holds so much itself."""
    workers = found.readings.workers if found.readings is not None else None
    beside = found.ledger.knobs.get("n_envs", 0) if workers is not None else 0
    return Demand(
        peak_bytes=found.peak_bytes + worker,
        upper_bytes=found.upper_bytes + worker,
        memory_bytes=request_of(found, "ray").memory_bytes + worker,
        worker_bytes=worker,
        cpus=1 + beside if cpus is None else cpus,
    )
