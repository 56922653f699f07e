"""What every disposable child does: confine itself, write its answer, and end."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from memfit.measure.children.way import Way
from memfit.model.confinement import Confinement
from memfit.model.job import Answer, Job
from memfit.model.json_loader import to_json
from memfit.model.training import ModuleHook


class Disposable:
    """One job, where its answer goes, and how the process is held."""

    def __init__(self, job: Job, result: Path, scratch: Path, way: Way) -> None:
        self.job = job
        self.result = result
        self.scratch = scratch
        self.own = os.getpid()
        self.way = way
        self.confinement: Confinement | None = None

    def answer(self, answer: Answer) -> NoReturn:
        """Write the answer and end: no `finally` of the user's, no exit handler, runs."""
        partial = self.result.with_suffix(".part")
        partial.write_text(json.dumps(to_json(replace(answer, confinement=self.confinement))))
        partial.rename(self.result)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)

    def confine(self) -> dict[str, ModuleHook]:
        """Let nothing outside be changed; hooks for modules that would."""
        if self.way is Way.NAMESPACES:  # the kernel does so already
            from memfit.child.renaming import rename_as_without_overlay

            self.confinement = Confinement.NAMESPACES
            rename_as_without_overlay()
            return {}
        from memfit.child.confinement import confine
        from memfit.child.file_shield import Shield

        shield = Shield(str(self.scratch))
        shield.install()
        free = (str(self.scratch), "/dev", "/proc")
        self.confinement = confine(free, network=self.job.network)
        return shield.hooks()
