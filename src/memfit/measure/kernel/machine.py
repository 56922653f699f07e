"""What kind of machine this is: its processor, cores and RAM, and no name of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from platform import machine as architecture
from platform import python_version

from memfit.model import Machine


def machine(packages: Sequence[str] = (), root: Path = Path("/")) -> Machine:
    """This machine, and the versions of those packages that are installed."""
    software = [f"Python {python_version()}"]
    for name in packages:
        try:
            software.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return Machine(
        processor=_field(root / "proc/cpuinfo", "model name") or architecture(),
        cores=len(os.sched_getaffinity(0)),
        ram_bytes=int((_field(root / "proc/meminfo", "MemTotal") or "0").split()[0]) * 1024,
        software=tuple(software),
    )


def _field(file: Path, name: str) -> str:
    """The first value of that name in a file of /proc; empty where it has none."""
    for line in file.read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return " ".join(value.split())
    return ""
