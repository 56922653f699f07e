"""What the vector envs of stable-baselines3 and of Gymnasium have in common."""

from __future__ import annotations

import weakref
from typing import Any

from memfit.dropins.workers.pool import WorkerPool
from memfit.errors import TargetFailed, UsageError

TIMEOUT = 600.0


class LightWorkers:
    """A pool of workers that ends with its vector env, and what it tells of itself."""

    _pool: WorkerPool
    _end: Any
    _closed_error: type[Exception] = UsageError

    def _own(self, pool: WorkerPool) -> None:
        self._pool = pool
        self._end = weakref.finalize(self, pool.stop, 2.0)

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

    def _open(self) -> None:
        if self._pool.stopped:
            raise self._closed_error("this vector env is closed. Make a new one")

    def _ended(self, wrong: str) -> None:
        """After the workers ended: what an env raised meanwhile."""
        self._end.detach()
        if wrong:
            raise TargetFailed(
                f"an env raised while it was closed:\n{wrong}\nFix its close()", output=wrong
            )
