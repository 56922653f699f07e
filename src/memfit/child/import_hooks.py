"""Calls hooks when a script imports a module: nothing is loaded that it does not load.

Libraries have hooks of their own; here are those that every run gets.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import math
import mmap
import sys
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any

from memfit.model.training import ModuleHook

_MAP_NORESERVE = 0x4000


class ImportHooks(importlib.abc.MetaPathFinder):
    """Calls hooks when a named module has been imported, in the order in which they were given."""

    def __init__(self, hooks: Iterable[Mapping[str, ModuleHook]]) -> None:
        self.hooks: dict[str, list[ModuleHook]] = {}
        for some in hooks:
            for name, hook in some.items():
                self.hooks.setdefault(name, []).append(hook)
        self._busy: set[str] = set()

    def install(self) -> None:
        for name in [n for n in self.hooks if n in sys.modules]:
            for hook in self.hooks.pop(name):
                hook(sys.modules[name])
        sys.meta_path.insert(0, self)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in self.hooks or name in self._busy:
            return None
        self._busy.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._busy.discard(name)
        if spec is None or spec.loader is None:
            return None
        hooks, execute = self.hooks[name], spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            for hook in hooks:
                hook(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def reserve_without_limit(numpy: ModuleType) -> None:
    """Let `numpy.zeros` reserve more than this machine has: pages that nobody touches are free.

    The kernel refuses a single mapping beyond RAM; the run's own machine may not. Arrays that it
    refuses are mapped without a reservation.
    """
    zeros = numpy.zeros

    def lazy_zeros(shape: Any, dtype: Any = float, order: Any = "C", **options: Any) -> Any:
        try:
            return zeros(shape, dtype, order, **options)
        except MemoryError as error:
            kind = numpy.dtype(dtype)
            dims = (shape,) if isinstance(shape, int) else tuple(int(n) for n in shape)
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
            try:
                memory = mmap.mmap(-1, math.prod(dims) * kind.itemsize, flags=flags)
            except OSError:
                raise error from None
            return numpy.frombuffer(memory, dtype=kind).reshape(dims, order=order)

    numpy.zeros = lazy_zeros  # type: ignore[attr-defined]
