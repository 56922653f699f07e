"""Somebody who types `memfit plan` in a folder of scripts: the real command line, watched."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import uuid
from dataclasses import dataclass
from pathlib import Path

SECONDS = 100.0


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def message(self) -> str:
        """The last line: memfit's own word, after whatever the target said."""
        return self.err.strip().splitlines()[-1]


class User:
    """Somebody with a folder of scripts, who types commands in it."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "project"
        self.folder.mkdir()
        # A short path: the addresses of sockets, which live there, may have 107 characters.
        self.temporary = Path(tempfile.mkdtemp(prefix="mf-", dir="/tmp"))
        self.mark = uuid.uuid4().hex
        self.environment = {
            **{k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"},
            "TMPDIR": str(self.temporary),
            "MEMFIT_TEST": self.mark,
        }

    def leave(self) -> None:
        """Take what the user had for temporary files away."""
        shutil.rmtree(self.temporary, ignore_errors=True)

    def script(self, text: str, name: str = "train.py") -> str:
        (self.folder / name).write_text(textwrap.dedent(text), encoding="utf-8")
        return name

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "memfit", "plan", *words],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def plan(self, *words: str) -> Outcome:
        """Run `memfit plan`, which leaves nothing running, lying about or changed."""
        before = self.files()
        with self.start("-q", *words) as process:
            out, err = process.communicate("an answer\n", timeout=SECONDS)
        assert self.files() == before, "a file of the user's was changed or added"
        self.nothing_remains()
        return Outcome(code=process.returncode, out=out, err=err)

    def fail(self, *words: str) -> Outcome:
        """Run a `memfit plan` that fails, and hold what is true of every failure."""
        outcome = self.plan("--format", "json", *words)
        assert outcome.out == ""
        assert outcome.message.startswith(("memfit: ", "Error: ")), outcome.err
        assert outcome.err.count("memfit: ") <= 1, outcome.err
        for own in ("memfit/child.py", "memfit/sources", "memfit/api/", "runpy"):
            assert own not in outcome.err, outcome.err
        return outcome

    def files(self) -> dict[str, tuple[int, bytes]]:
        return {
            str(file.relative_to(self.folder)): (
                file.stat().st_mtime_ns,
                b"" if file.is_dir() else file.read_bytes(),
            )
            for file in sorted(self.folder.rglob("*"))
        }

    def nothing_remains(self) -> None:
        assert self.running() == []
        assert list(self.temporary.iterdir()) == []

    def running(self) -> list[str]:
        """The commands of all processes that carry this user's mark."""
        wanted, found = f"MEMFIT_TEST={self.mark}".encode(), []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and wanted in (entry / "environ").read_bytes():
                    found.append((entry / "cmdline").read_text().replace("\0", " "))
            except OSError:  # it ended while we looked, or is not ours
                continue
        return found
