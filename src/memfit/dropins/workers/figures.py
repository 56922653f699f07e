"""What both vector envs tell of their workers."""

from __future__ import annotations

from memfit.dropins.workers.pool import WorkerPool


class Figures:
    """Of the pool that a vector env has."""

    _pool: WorkerPool

    @property
    def shared_nbytes(self) -> int:
        """Bytes of the shared memory, for all slots of observations."""
        return self._pool.slots.layout.nbytes

    @property
    def copies(self) -> int:
        """How often observations were copied, since those before were all still held."""
        return self._pool.slots.copies

    @property
    def pids(self) -> list[int]:
        """The process ids of the workers."""
        return [worker.pid for worker in self._pool.workers]

    @property
    def late_imports(self) -> list[str]:
        """Modules that envs imported in the workers: with preload= they would be shared."""
        return self._pool.late_imports
