"""What a check found, and what would fix it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from memfit.model.ledger import Ledger

# Less than this is not worth a change: a hundredth of the peak, and what two runs of the same
# small script differ by.
_LEAST_SHARE, _LEAST_BYTES = 100, 8 * 2**20


class Severity(StrEnum):
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing worth knowing about a run: a code, how bad it is, what, and where.

    `bytes` is the memory that it is about, None where it is about something else.
    """

    code: str
    severity: Severity
    message: str
    where: str
    bytes: int | None = None


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


def least_worth(peak: int) -> int:
    """The fewest bytes that are worth a change to a run with this peak."""
    return max(-(-peak // _LEAST_SHARE), _LEAST_BYTES)
