"""What a check found, and what would fix it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from memfit.model.changes import Changes
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

    `bytes` is the memory that it is about, None where it is about something else. What was found
    in a text says `path`, `line` and `column` (from 1) and, in `fix`, the edit that helps.
    """

    code: str
    severity: Severity
    message: str
    where: str
    bytes: int | None = None
    path: str = ""
    line: int = 0
    column: int = 0
    fix: str = ""


@dataclass(frozen=True, kw_only=True)
class Advice:
    """A change to the run and what it saves: two ledgers subtracted.

    With a `safe` one, training stays the same to the bit. One `to_rounding` takes the same steps,
    with sums in another order. Any other changes training. `changes` are the same for a program,
    empty where memfit cannot make them; `costs` is what is known of its speed.
    """

    code: str
    saves_bytes: int
    change: str
    safe: bool = False
    verified: bool = False
    to_rounding: bool = False
    costs: str = ""
    changes: Changes = field(default_factory=Changes)


@dataclass(frozen=True, kw_only=True)
class Fix:
    """A change to the run, and the ledger that the run would then have.

    `safe` says that training stays the same to the bit, `to_rounding` that it takes the same
    steps but for the order of sums; `estimated` that the ledger is a guess until it is planned.
    """

    change: str
    ledger: Ledger
    safe: bool = False
    to_rounding: bool = False
    estimated: bool = False
    costs: str = ""
    changes: Changes = field(default_factory=Changes)


def least_worth(peak: int) -> int:
    """The fewest bytes that are worth a change to a run with this peak."""
    return max(-(-peak // _LEAST_SHARE), _LEAST_BYTES)
