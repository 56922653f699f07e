"""Why a component has its size: measured, derived, probed or assumed."""

from dataclasses import dataclass
from enum import StrEnum


class EvidenceKind(StrEnum):
    """How far a figure can be trusted, best first."""

    MEASURED = "measured"
    DERIVED = "derived"
    PROBED = "probed"
    ASSUMED = "assumed"


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What says so: a file and line, an object's path, or the probe that saw it."""

    kind: EvidenceKind
    where: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.where}"
