"""Programs that hold known things, on each Python that is here, and what a walk says of them."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from memfit.measure.live.outside_walk.answer import walk_outside

SECONDS = 120.0  # a busy machine is slow, which is no failure
READY = "ready"
OTHERS = ("3.12", "3.13")


def _pythons() -> list[Any]:
    """This Python, and others where they are found; those that are not are named as skipped."""
    found = [pytest.param(sys.executable, id="this")]
    for version in OTHERS:
        places = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
        places += [p for p in (Path(f"/usr/bin/python{version}"),) if p.exists()]
        skipped = [] if places else [pytest.mark.skip(reason=f"no Python {version} here")]
        place = str(places[-1]) if places else ""
        found.append(pytest.param(place, id=version, marks=skipped))
    return found


PYTHONS = _pythons()


@contextmanager
def running(
    script: str, folder: Path, python: str = sys.executable
) -> Iterator[subprocess.Popen[str]]:
    """A program from where it has printed `ready` to the end of the block."""
    file = folder / "program.py"
    file.write_text(textwrap.dedent(script))
    process = subprocess.Popen(
        [python, str(file)],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline().strip() == READY
        yield process
        assert process.poll() is None
    finally:
        process.kill()
        process.communicate()


class Walked:
    """What a walk found, by holder."""

    def __init__(self, pid: int, roles: Mapping[str, str] | None = None) -> None:
        self.answer = walk_outside(pid, seconds=SECONDS, roles=roles or {})
        self.arrays = {row["holder"]: row for row in self.answer["arrays"]}
        self.python = {row["holder"]: row for row in self.answer["python"]}
        assert self.answer["walk"]["complete"]
