"""Any training loop: observed while its script runs on as it is, where no library owns it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from memfit.errors import SpecError
from memfit.formulas.trial_rows import trial_rows
from memfit.libraries.loop.own_files import OwnFiles
from memfit.libraries.loop.setting_sources import SettingSources
from memfit.libraries.loop.signals import Signals
from memfit.libraries.loop.training import NAME, LoopTraining
from memfit.model import Component, Readings, RunSpec
from memfit.model.job import PROGRAMS, Job, Look, TargetKind
from memfit.model.training import ModuleHook, Stop

_LEARNS = re.compile(rb"\b(backward|grad|value_and_grad|partial_fit)\(")


class Loop:
    """What memfit knows about training loops of nobody's library."""

    name = NAME
    extra = "torch"
    packages: tuple[str, ...] = ()
    imports = ("numpy", "torch")
    begins = ""
    roles: Mapping[str, str] = {}

    def hooks(self, stop: Stop, job: Job) -> Iterator[Mapping[str, ModuleHook]]:
        counted = job.look is Look.TRAIN  # whoever's training it is
        if not counted and (job.kind not in PROGRAMS or job.look not in (Look.SURVEY, Look.AFTER)):
            return
        signals, sources = Signals(), SettingSources(job.knobs if job.rewrite else {})
        # A short trial has smaller arrays, which are to be seen again.
        least = {"least": 0} if job.short else {}
        training = LoopTraining(signals, OwnFiles(job), sources, **least)
        tried = job.look is Look.SURVEY and not job.skip
        signals.start(lambda: stop(training), play_back=tried and not job.real_env)
        text = Path(job.target) if job.kind is TargetKind.SCRIPT else None
        if text is not None and text.is_file() and _LEARNS.search(text.read_bytes()):
            signals.awaits()
        yield signals.hooks()
        yield sources.hooks()

    def owns(self, made: Any) -> bool:
        return False

    def begin(self, made: Any, stop: Stop) -> None:
        return

    def build(self, facts: Mapping[str, Any], scratch: Path, stop: Stop) -> None:
        raise SpecError("a spec cannot describe a loop of its own: plan its script")

    def rows(self, spec: RunSpec, readings: Readings) -> Iterator[Component]:
        return trial_rows(spec, readings)


LIBRARY = Loop()
