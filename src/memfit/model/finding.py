"""What a check found, and what would fix it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from memfit.model.ledger import Ledger


class Severity(StrEnum):
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing worth knowing about a run: a code, how bad it is, what, and where."""

    code: str
    severity: Severity
    message: str
    where: str


@dataclass(frozen=True, kw_only=True)
class Advice:
    """A change to the run and what it saves: two ledgers subtracted."""

    code: str
    saves_bytes: int
    change: str
    verified: bool = False


@dataclass(frozen=True, kw_only=True)
class Fix:
    """A change to the run, and the ledger that the run would then have."""

    change: str
    ledger: Ledger
