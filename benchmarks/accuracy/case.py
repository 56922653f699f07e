"""What a case of the benchmark is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(__file__).parent / "scripts"


@dataclass(frozen=True)
class Case:
    """One training run: a script, its arguments and what it stands for."""

    name: str
    script: str
    args: tuple[str, ...]
    covers: tuple[str, ...]
    small: bool = False

    @property
    def path(self) -> Path:
        """Where the script is."""
        return SCRIPTS / self.script


def case(name: str, script: str, args: str, covers: str, *, small: bool = False) -> Case:
    """Write a case in short: arguments and tags are separated by blanks."""
    return Case(name, f"{script}.py", tuple(args.split()), tuple(covers.split()), small)
