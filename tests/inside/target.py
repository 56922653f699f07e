"""A training in a child process, with its inside view ready."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memfit.libraries import all_roles
from memfit.measure.children import launch
from memfit.measure.live import listener_client

READY = "ready"
SECONDS = 150.0  # a busy machine is slow, which is no failure


class Target:
    """A script that has got to the line `ready()` and waits there for its standard input."""

    def __init__(
        self,
        script: str,
        folder: Path,
        *words: str,
        environment: dict[str, str] | None = None,
        before: Sequence[str] = (),
    ) -> None:
        file = folder / "training.py"
        file.write_text(_HEAD + textwrap.dedent(script))
        quiet = {"OMP_WAIT_POLICY": "PASSIVE", **(environment or os.environ)}
        self.process = subprocess.Popen(
            [*before, sys.executable, *words, str(file)],
            cwd=folder,
            env=launch.environment(quiet),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.line() == READY, self.process.communicate(timeout=SECONDS)[1]

    def __enter__(self) -> Target:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    @property
    def pid(self) -> int:
        return self.process.pid

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def end(self) -> tuple[str, str]:
        """Let the script run to its end; what it said."""
        said = self.process.communicate("\n", timeout=SECONDS)
        assert self.process.returncode == 0, said[1]
        return said

    def ask(self, *, duplicates: bool = False) -> Answer:
        found = listener_client.ask(
            self.pid, duplicates=duplicates, timeout=SECONDS, roles=all_roles()
        )
        assert found is not None
        return Answer(found)


def asked(pid: int, *, duplicates: bool = False, timeout: float = SECONDS) -> Any | None:
    """What a process answers; None where it does not, since it is ending or does not listen."""
    try:
        return listener_client.ask(pid, duplicates=duplicates, timeout=timeout)
    except listener_client.NoAnswer:
        return None


class Answer:
    """What a target said."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields
        self.arrays: dict[str, dict[str, Any]] = {}
        for row in fields["arrays"]:
            known = self.arrays.setdefault(row["holder"], row)
            assert known is row or known["library"] != row["library"], row

    def nbytes(self, holder: str) -> int:
        assert holder in self.arrays, sorted(self.arrays)
        return int(self.arrays[holder]["nbytes"])

    def python(self, holder: str) -> dict[str, Any]:
        rows = {row["holder"]: row for row in self.fields["python"]}
        assert holder in rows, sorted(rows)
        return dict(rows[holder])


_HEAD = f'''\
import sys


def ready():
    print("{READY}", flush=True)
    sys.stdin.readline()


'''
