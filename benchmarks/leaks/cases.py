"""The cases of the corpus: a family and a seed each."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from benchmarks.leaks.base import Base

TUNING = ("families_tuning", "families_moved")
REPORT = ("families_report", "families_odd", "families_mapped", "families_late")
LAST = REPORT[-1]
TARGET = "benchmarks.leaks.cases:make"


@dataclass(frozen=True, kw_only=True)
class Case:
    """One environment of the corpus."""

    family: str
    seed: int
    leaks: bool
    report_only: bool
    torch: bool

    @property
    def name(self) -> str:
        return f"{self.family}-{self.seed}"

    def holder(self) -> str:
        """The path of what keeps, nothing where no Python object does."""
        made: Base = make(self.family, self.seed)
        return type(made).HOLDER.format(name=made.name)


def families(*modules: str) -> dict[str, type[Base]]:
    """The families of these modules, by name."""
    return {
        name: thing
        for module in modules
        for name, thing in vars(importlib.import_module(f"benchmarks.leaks.{module}")).items()
        if isinstance(thing, type) and issubclass(thing, Base) and thing is not Base
    }


def cases(seeds: range, *modules: str) -> list[Case]:
    """Each family with each seed; where torch is loaded, with fewer."""
    found = []
    for module in modules:
        for name, family in families(module).items():
            count = max(2, len(seeds) // 3) if family.TORCH else len(seeds)
            found += [
                Case(
                    family=name,
                    seed=seed,
                    leaks=family.LEAKS,
                    report_only=module in REPORT,
                    torch=family.TORCH,
                )
                for seed in seeds[:count]
            ]
    return found


def make(family: str, seed: int) -> Any:
    """The environment of a case."""
    for module in (*TUNING, *REPORT):
        try:
            found = families(module)
        except ModuleNotFoundError:
            continue
        if family in found:
            return found[family](seed)
    raise KeyError(family)
