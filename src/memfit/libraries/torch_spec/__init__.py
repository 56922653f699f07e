"""Plain torch trainings, from a run spec or from live objects (`memfit.TorchRun`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from memfit.formulas.run_rows import Wording, run_rows
from memfit.model import Component, Readings, RunSpec
from memfit.model.job import Job
from memfit.model.training import ModuleHook, Stop

_WORDING = Wording(
    built="the process with the networks built",
    network=lambda network: network.name,
    parameters="its parameters and buffers",
)


class TorchSpec:
    """What memfit knows about trainings that are networks, an optimizer and arrays."""

    name = "torch"
    extra = "torch"
    packages = ("torch", "cloudpickle")
    imports = ("numpy", "torch")
    begins = ""
    roles: Mapping[str, str] = {}

    def hooks(self, stop: Stop, job: Job) -> Iterable[Mapping[str, ModuleHook]]:
        return ()

    def owns(self, made: Any) -> bool:
        return any(kind.__name__ == "TorchRun" for kind in type(made).__mro__)

    def begin(self, made: Any, stop: Stop) -> None:
        from memfit.libraries.torch_spec.torch_run import from_run

        stop(from_run(made))

    def build(self, facts: Mapping[str, Any], scratch: Path, stop: Stop) -> None:
        from memfit.libraries.torch_spec.described_run import from_spec

        stop(from_spec(facts))

    def rows(self, spec: RunSpec, readings: Readings) -> Iterator[Component]:
        return run_rows(spec, readings, _WORDING)


LIBRARY = TorchSpec()
