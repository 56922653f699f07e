"""Runs on the nodes of a cluster: points of a sweep, fixes of an optimize, measured there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from memfit.errors import MemfitError, UsageError
from memfit.integrations.ray.cluster import connected, largest_node
from memfit.measure.children.sandbox import ROOM
from memfit.units import format_bytes

T = TypeVar("T")

_LOOK_SECONDS = 1.0
_RETRIES = 3  # of a run whose node has left
# What changes a run's memory, or what it is, has there the value that it has here.
_SAME = (
    *("PATH", "PYTHONPATH", "PYTHONHASHSEED", "PYTHONMALLOC", "MALLOC_ARENA_MAX", "LD_PRELOAD"),
    *("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "OMP_NUM_THREADS", "MKL_NUM_THREADS"),
    *("OPENBLAS_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "XDG_CACHE_HOME"),
)


class Nodes:
    """The nodes of a cluster, as a place where something is run within so much memory."""

    def __init__(self, ray: Any, limit: int | None) -> None:
        self._ray = ray
        largest = largest_node()
        self.memory = limit or int(ROOM * largest)
        self.source = f"{ROOM:.0%} of the largest node of the cluster"
        if not largest:
            raise UsageError("no node of the cluster gives memory: ray start --memory=BYTES does")
        if self.memory > largest:
            raise UsageError(
                f"no node of the cluster has {format_bytes(self.memory)}: the largest has "
                f"{format_bytes(largest)}. Give less with --limit, or add a node"
            )

    def start(self, work: Callable[..., T], *args: Any, **named: Any) -> Any:
        """Have it done on a node that has the memory; Ray does it again where a node leaves."""
        remote = self._ray.remote(
            num_cpus=1, memory=self.memory, max_retries=_RETRIES, max_calls=1
        )(_there)
        return remote.remote(os.getcwd(), _environment(), work, args, named)  # noqa: PTH109

    def next_done(self, waiting: Sequence[Any]) -> Any:
        """The first that is done, once there is one."""
        while True:
            done, _ = self._ray.wait(list(waiting), timeout=_LOOK_SECONDS)
            if done:
                return done[0]
            self._check_room()

    def answer(self, started: Any) -> Any:
        """What came of it; its errors are raised here."""
        self.next_done([started])
        errors = self._ray.exceptions
        try:
            return self._ray.get(started)
        except errors.RayTaskError as error:
            if isinstance(error.cause, MemfitError):
                raise error.cause from None
            raise
        except (errors.WorkerCrashedError, errors.NodeDiedError, errors.OutOfMemoryError) as error:
            raise UsageError(
                f"the node of a run was lost {_RETRIES + 1} times ({type(error).__name__}): what "
                "was measured is kept, and goes on where the same is asked again"
            ) from None

    def cancel(self, waiting: Sequence[Any]) -> None:
        """End what is not wanted any more."""
        for started in waiting:
            self._ray.cancel(started, force=True)

    def _check_room(self) -> None:
        if largest_node() < self.memory:
            raise UsageError(
                f"all nodes with {format_bytes(self.memory)} have left the cluster: what was "
                "measured is kept. Ask the same again once one is back, or with a smaller --limit"
            )


@contextmanager
def cluster_nodes(limit: int | None) -> Iterator[Nodes]:
    """The cluster that is there; what still runs for us is ended in the end."""
    with connected() as ray:
        yield Nodes(ray, limit)


def _environment() -> dict[str, str | None]:
    return {name: os.environ.get(name) for name in _SAME}


def _there(
    folder: str,
    variables: Mapping[str, str | None],
    work: Callable[..., T],
    args: Sequence[Any],
    named: Mapping[str, Any],
) -> T:
    """On the node: the same folder and variables, then the work."""
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    try:
        os.chdir(folder)
    except OSError as error:
        raise UsageError(
            f"a node of the cluster has no folder {folder} ({error.strerror}): nodes need the same "
            "files at the same place, as on a shared file system"
        ) from None
    return work(*args, **named)
