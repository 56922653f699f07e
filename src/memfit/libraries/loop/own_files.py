"""The files of a program that are its own: beside its script or in its package, no library's."""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from memfit.model.job import Job, TargetKind

_MEMFIT = str(Path(__file__).resolve().parents[2])
_MOST_BYTES = 2**20


class OwnFiles:
    """Tells a program's own files from those of libraries, while it runs."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def has(self, path: str) -> bool:
        """Whether a file was found in the program's folder, and not in one below it for libraries.

        The reference trainings are programs too.
        """
        path = os.path.realpath(path)
        if _within(path, _MEMFIT) and f"{os.sep}systems{os.sep}" not in path:
            return False
        for root in self._roots():
            if _within(path, root):
                below = (os.path.realpath(p) for p in sys.path if p)
                return not any(len(p) > len(root) and _within(path, p) for p in below)
        return False

    def texts(self) -> Iterator[str]:
        """What the files say that were loaded so far, the main one first."""
        cells = f"{self.job.target} (cell "
        for name, entry in list(linecache.cache.items()):
            if name.startswith(cells) and len(entry) > 2:
                yield "".join(entry[2])
        seen: set[str] = set()
        main = [self.job.target] if self.job.kind is TargetKind.SCRIPT else []
        loaded = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
        for path in (*main, *loaded):
            if isinstance(path, str) and path not in seen and path.endswith(".py"):
                seen.add(path)
                if path in main or self.has(path):
                    yield _text(path)

    def _roots(self) -> list[str]:
        if self.job.kind is not TargetKind.MODULE:
            return [os.path.dirname(os.path.realpath(self.job.target))]  # noqa: PTH120
        top = sys.modules.get(self.job.target.partition(".")[0])
        folders = [*getattr(top, "__path__", ())][:1]
        return [os.path.realpath(folder) for folder in (*folders, Path.cwd())]


def _within(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip(os.sep) + os.sep)


def _text(path: str) -> str:
    try:
        if os.path.getsize(path) <= _MOST_BYTES:  # noqa: PTH202 - of what is loaded, many
            return Path(path).read_text(errors="replace")
    except OSError:
        pass
    return ""
