"""Measures what each module adds to the process while a run imports it."""

from __future__ import annotations

import importlib
import os
import threading
from typing import Any

from memfit.measure.kernel.proc import PAGE


class ImportSteps:
    """The resident bytes that modules added, by the import that the run's own code asked for.

    `files` are pages of mapped files that each module added, and those that were there before as
    the module `""`. A module's own bytes are what it added, less what those added that it imported
    in turn.
    """

    def __init__(self) -> None:
        self.bytes: dict[str, dict[str, int]] = {}
        self.files: dict[str, int] = {}
        # Of each import under way, the bytes and the pages of files that others in it have added.
        self._running: list[tuple[int, int]] = []
        self._asked = ""
        self._owner = self._here()
        self._statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)

    def install(self) -> None:
        """Stand where every module is loaded."""
        bootstrap: Any = importlib._bootstrap
        load = bootstrap._load_unlocked
        self.files[""] = self.mapped()

        def measured(spec: Any) -> Any:
            if self._here() != self._owner:  # a fork, or a thread whose imports mix with these
                return load(spec)
            if not self._running:
                self._asked = str(spec.name)
            before, files_before = self._resident(), self.mapped()
            self._running.append((0, 0))
            try:
                return load(spec)
            finally:
                inner, inner_files = self._running.pop()
                added, files = self._resident() - before, self.mapped() - files_before
                self._note(str(spec.name), added - inner)
                if files > inner_files:
                    self.files[str(spec.name)] = files - inner_files
                if self._running:
                    outer, outer_files = self._running[-1]
                    self._running[-1] = outer + added, outer_files + files

        bootstrap._load_unlocked = measured

    def _here(self) -> tuple[int, int]:
        return os.getpid(), threading.get_ident()

    def _note(self, name: str, added: int) -> None:
        if added > 0:
            asked = self.bytes.setdefault(self._asked, {})
            asked[name] = asked.get(name, 0) + added

    def mapped(self) -> int:
        """Pages of mapped files that are resident now."""
        return int(os.pread(self._statm, 64, 0).split()[2]) * PAGE

    def _resident(self) -> int:
        return int(os.pread(self._statm, 64, 0).split()[1]) * PAGE
