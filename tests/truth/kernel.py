"""What the kernel says about a running program. Nothing here is memfit's: it judges memfit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SCRIPTS = Path(__file__).parent / "scripts"
_SECONDS = 0.02
# Threads that wait should not spin: other work on the machine would make a second of it an hour.
_ENVIRONMENT = {"PYTHONDONTWRITEBYTECODE": "1", "OMP_WAIT_POLICY": "PASSIVE"}
_SHARE = 4  # looking takes a fifth of the time at most: it slows down what it looks at


@dataclass(kw_only=True)
class Watched:
    """A program from its start to its end: its peak and what was seen on the way."""

    code: int
    out: str
    err: str
    peak: int
    names: dict[str, int] = field(default_factory=dict)
    marks: list[tuple[int, int]] = field(default_factory=list)


def python(*words: str, cwd: Path, mark: Path | None = None, seconds: float = 150) -> Watched:
    """Run Python with these words and sample its process tree from outside until it ends.

    `marks` pairs the number in the file `mark` with the tree's peak up to then. `names` counts how
    many processes of a name were there at once.
    """
    out, err = cwd / "out.txt", cwd / "err.txt"
    with out.open("w") as output, err.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, *words],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            env={**os.environ, **_ENVIRONMENT},
        )
    watched = Watched(code=-1, out="", err="", peak=0)
    deadline = time.monotonic() + seconds
    try:
        while process.poll() is None:
            started = time.monotonic()
            _look(process.pid, watched, mark)
            now = time.monotonic()
            if now > deadline:
                raise TimeoutError(f"{words} took more than {seconds} s")
            time.sleep(max(_SECONDS, _SHARE * (now - started)))
    finally:
        process.kill()
        watched.code = process.wait()
    watched.out, watched.err = out.read_text(), err.read_text()
    return watched


def run(script: str, *arguments: str, cwd: Path, mark: Path | None = None) -> Watched:
    """Run a script as its user would."""
    watched = python(str(SCRIPTS / script), *arguments, cwd=cwd, mark=mark)
    assert watched.code == 0, watched.err
    return watched


def plan(script: str, *words: str, cwd: Path) -> tuple[dict[str, Any], Watched]:
    """Plan a script on memfit's command line; the answer, and what planning took."""
    target = ["-m", "memfit", "plan", str(SCRIPTS / script), "--format", "json", "-q"]
    watched = python(*target, *words, cwd=cwd)
    assert watched.code in (0, 3), watched.err
    answer: dict[str, Any] = json.loads(watched.out)
    return answer, watched


def _look(pid: int, watched: Watched, mark: Path | None) -> None:
    readings = _readings(pid)
    if not readings:
        return
    total = _tree(list(readings.values()))
    if len(readings) > 1 and total > watched.peak:
        # What a process shared falls to others when it ends: sizes from before and after that must
        # not be added up. So a new peak is read twice, and counts where both see the same ones.
        again = _readings(pid)
        total = min(total, _tree(list(again.values()))) if again.keys() == readings.keys() else 0
    # The kernel keeps each process's own high-water mark, so that no spike of the main one is lost.
    alone = len(readings) == 1
    spike = max(0, _high_water(pid) - readings[pid]["Rss"]) if alone and pid in readings else 0
    watched.peak = max(watched.peak, total + spike)
    names: dict[str, int] = {}
    for p in readings:
        name = _read(p, "comm").strip()
        names[name] = names.get(name, 0) + 1
    for name, count in names.items():
        watched.names[name] = max(watched.names.get(name, 0), count)
    if mark is not None and mark.exists() and (text := mark.read_text()):
        watched.marks.append((int(text), watched.peak))


def _readings(pid: int) -> dict[int, dict[str, int]]:
    """Each process of a tree that is there, by its PID."""
    return {p: r for p in (pid, *below(pid)) if (r := _rollup(p))}


def _tree(readings: Sequence[dict[str, int]]) -> int:
    """The sum of PSS, with files at least as the largest process has them.

    Files are mapped by every Python that runs just now, so that their PSS would depend on what
    else the machine does.
    """
    in_full = max(r["Rss"] - r["Anonymous"] - r["RssShmem"] for r in readings)
    by_part = sum(r["Pss_File"] for r in readings)
    return sum(r["Pss"] for r in readings) + max(0, in_full - by_part)


def recorded(memfit: int) -> int:
    """The command of `memfit run`: the first below its keeper, which is its own first child."""
    return below(below(memfit)[0])[0]


def below(pid: int) -> list[int]:
    found: list[int] = []
    queue = [pid]
    while queue:
        parent = queue.pop()
        try:
            threads = os.listdir(f"/proc/{parent}/task")
        except OSError:
            continue
        for thread in threads:
            children = [int(c) for c in _read(parent, f"task/{thread}/children").split()]
            found += children
            queue += children
    return found


def pss(pid: int) -> int:
    """The proportional set size of one process; 0 where it is gone."""
    return _rollup(pid).get("Pss", 0)


def _rollup(pid: int) -> dict[str, int]:
    found = _figures(pid, "smaps_rollup")
    if found:
        found["RssShmem"] = _figures(pid, "status").get("RssShmem", 0)
    return found


def _high_water(pid: int) -> int:
    return _figures(pid, "status").get("VmHWM", 0)


def _figures(pid: int, name: str) -> dict[str, int]:
    """All lines of a file of /proc that say how many kB something is, in bytes."""
    found = {}
    for line in _read(pid, name).splitlines():
        word, _, rest = line.partition(":")
        if rest.endswith(" kB"):
            found[word] = int(rest.split()[0]) * 1024
    return found


def _read(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except OSError:
        return ""
