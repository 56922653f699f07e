"""What a check found, and what would mend it."""

from dataclasses import dataclass
from enum import StrEnum


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
    change: str
    saves_bytes: int
    verified: bool = False
