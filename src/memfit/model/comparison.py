"""Two results side by side: what grew, what shrank."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from memfit.model.notebook import ShownInNotebooks


@dataclass(frozen=True, kw_only=True)
class Changed:
    """A row of two results or readings; 0 where one does not have it."""

    name: str
    before: int
    after: int

    @property
    def bytes(self) -> int:
        return self.after - self.before


def lasting_name(name: str) -> str:
    """A row's name from one time to another: large blocks are one, since their addresses differ."""
    return "blocks" if name.startswith("blocks.") else name


@dataclass(frozen=True, kw_only=True)
class Course:
    """How the memory of a result went: seconds with bytes where it was read, or phases."""

    readings: tuple[tuple[float, int], ...] = ()
    phases: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Comparison(ShownInNotebooks):
    """What changed from one result to another."""

    before: str
    after: str
    before_bytes: int
    after_bytes: int
    rows: tuple[Changed, ...]
    notes: tuple[str, ...] = ()
    before_course: Course = field(default_factory=Course)
    after_course: Course = field(default_factory=Course)

    @property
    def bytes(self) -> int:
        return self.after_bytes - self.before_bytes

    @property
    def share(self) -> float:
        """Growth as a share of the first."""
        return self.bytes / self.before_bytes if self.before_bytes else float(self.bytes > 0)
