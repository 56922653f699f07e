"""Measures what each module adds to the process while a run imports it."""

from __future__ import annotations

import importlib
import os
import threading
from typing import Any

from memfit.measure.kernel.proc import PAGE


class ImportSteps:
    """The resident bytes that modules added, by the import that the run's own code asked for.

    `files` are all pages of mapped files when a package had been loaded. A module's own bytes are
    what it added, less what those added that it imported in turn.
    """

    def __init__(self) -> None:
        self.bytes: dict[str, dict[str, int]] = {}
        self.files: dict[str, int] = {}
        self._running: list[int] = []  # of each import under way, what others in it have added
        self._asked = ""
        self._owner = self._here()
        self._statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)

    def install(self) -> None:
        """Stand where every module is loaded."""
        bootstrap: Any = importlib._bootstrap
        load = bootstrap._load_unlocked

        def measured(spec: Any) -> Any:
            if self._here() != self._owner:  # a fork, or a thread whose imports mix with these
                return load(spec)
            if not self._running:
                self._asked = str(spec.name)
            before = self._resident()
            self._running.append(0)
            try:
                return load(spec)
            finally:
                inner, added = self._running.pop(), self._resident() - before
                self._note(str(spec.name), added - inner)
                if "." not in spec.name:
                    self.files[str(spec.name)] = self.mapped()
                if self._running:
                    self._running[-1] += added

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
