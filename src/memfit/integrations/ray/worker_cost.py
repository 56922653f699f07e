"""What a process of Ray holds before any of the user's code has run in it."""

from __future__ import annotations

import os

from memfit.measure.children.import_cost import import_cost
from memfit.measure.kernel import proc

_MODULES = ("ray", "ray.tune")


def worker_bytes() -> int:
    """What a process of Ray holds beyond a plain Python, Tune included; 0 without Ray.

    It is what importing Ray costs, and what a worker of the cluster really holds, if that is more
    and one is connected to.
    """
    base = import_cost(()).bytes
    imported = import_cost(_MODULES).bytes
    if imported <= base:
        return 0
    return max(imported, _of_a_worker()) - base


def _of_a_worker() -> int:
    import ray

    if not ray.is_initialized():
        return 0
    found: int = ray.get(ray.remote(num_cpus=0, max_calls=1)(_held).remote())
    return found


def _held() -> int:
    """What this worker holds once it has imported what a trial of Tune does."""
    import ray.tune  # noqa: F401

    return proc.tree_memory(os.getpid()).alone
