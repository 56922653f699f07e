"""JAX: a training loop, or one compiled program, that learns by gradients of JAX.

It is observed as any loop is; this file says what such a run's process imports, and its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from memfit.errors import SpecError
from memfit.formulas.trial_rows import trial_rows
from memfit.libraries.loop.training import JAX
from memfit.model import Component, Readings, RunSpec
from memfit.model.job import Job
from memfit.model.training import ModuleHook, Stop


class JaxLoop:
    """What memfit knows about trainings in JAX, beside what it knows about any loop."""

    name = JAX
    extra = "jax"
    packages = ("jax",)
    imports = ("numpy", "jax")
    begins = ""
    roles: Mapping[str, str] = {}

    def hooks(self, stop: Stop, job: Job) -> Iterator[Mapping[str, ModuleHook]]:
        yield from ()  # those of any loop hear what JAX does

    def owns(self, made: Any) -> bool:
        return False

    def begin(self, made: Any, stop: Stop) -> None:
        return

    def build(self, facts: Mapping[str, Any], scratch: Path, stop: Stop) -> None:
        raise SpecError("a spec cannot describe a training in JAX: plan its script")

    def rows(self, spec: RunSpec, readings: Readings) -> Iterator[Component]:
        return trial_rows(spec, readings)


LIBRARY = JaxLoop()
