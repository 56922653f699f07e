"""The Python files that a check reads: those that are named, and those of directories."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path

from memfit.errors import UsageError

# Nobody's own scripts: environments, caches, what is built or installed.
_PASSED_OVER = {"__pycache__", "node_modules", "site-packages", "build", "dist", "venv", "env"}
_MOST_BYTES = 4 << 20  # a larger one is data
_PYTHON = (".py", ".pyw")


def python_files(target: Path, exclude: Sequence[str] = ()) -> list[Path]:
    """A file, or the Python files of a directory and those below, in order."""
    if not target.is_dir():
        return [target]
    found = sorted(_below(target, exclude))
    if not found:
        raise UsageError(
            f"{target} has no Python file (.py) in it: name a script, or another directory"
        )
    return found


def text_of_file(path: Path) -> bytes:
    """The bytes of a script; refused is what cannot be one."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise UsageError(f"{path} has more than 4 MiB: no script is as large; name another")
        text = path.read_bytes()
    except FileNotFoundError:
        raise UsageError(f"there is no file {path}: name a script or a directory") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): name another") from None
    if b"\0" in text:
        raise UsageError(f"{path} is no text: name a Python script")
    return text


def _below(directory: Path, exclude: Sequence[str]) -> Iterator[Path]:
    for at, folders, files in os.walk(directory):
        here = Path(at)
        folders[:] = [
            name
            for name in folders
            if name not in _PASSED_OVER
            and not name.startswith(".")
            and not (here / name / "pyvenv.cfg").exists()
            and not _matches(here / name, directory, exclude)
        ]
        for name in files:
            path = here / name
            if name.endswith(_PYTHON) and not _matches(path, directory, exclude) and path.is_file():
                yield path


def _matches(path: Path, directory: Path, patterns: Sequence[str]) -> bool:
    inner = path.relative_to(directory).as_posix()
    return any(fnmatch(inner, p) or fnmatch(path.name, p) for p in patterns)
