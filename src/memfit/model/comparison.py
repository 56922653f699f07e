"""Two results side by side: what grew, what shrank."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Changed:
    """A row of two results or readings; 0 where one does not have it."""

    name: str
    before: int
    after: int

    @property
    def bytes(self) -> int:
        return self.after - self.before


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What changed from one result to another."""

    before: str
    after: str
    before_bytes: int
    after_bytes: int
    rows: tuple[Changed, ...]
    notes: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        return self.after_bytes - self.before_bytes

    @property
    def share(self) -> float:
        """Growth as a share of the first."""
        return self.bytes / self.before_bytes if self.before_bytes else float(self.bytes > 0)
