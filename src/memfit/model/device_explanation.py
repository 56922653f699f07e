"""What held a card's memory: the answer of `memfit explain` for a snapshot."""

from __future__ import annotations

from dataclasses import dataclass

from memfit.model.device_snapshot import Stack
from memfit.model.notebook import ShownInNotebooks


@dataclass(frozen=True, kw_only=True)
class HeldPart:
    """Blocks that have something in common: a phase, a class of sizes, a place in the program."""

    name: str
    bytes: int
    blocks: int


@dataclass(frozen=True, kw_only=True)
class HeldStack:
    """Blocks that were asked for by the same calls."""

    name: str
    bytes: int
    blocks: int
    stack: Stack


@dataclass(frozen=True, kw_only=True)
class OutOfDeviceMemory:
    """A request for which there was no room, and what the driver had free then."""

    asked: int
    free: int


@dataclass(frozen=True, kw_only=True)
class OtherSettings:
    """The same requests under other settings of the allocator, by simulation."""

    settings: str
    peak_reserved: int
    fits: bool | None


@dataclass(frozen=True, kw_only=True)
class DeviceMoment:
    """What was allocated and reserved after so many events."""

    event: int
    allocated: int
    reserved: int


@dataclass(frozen=True, kw_only=True)
class DeviceExplanation:
    """One card at its peak, or where it ran out.

    `split` is free within segments that are in use, `cached` free in segments that nothing uses and
    that the driver could have back.
    """

    device: int
    moment: str
    at_event: int
    events: int
    allocated: int
    waiting: int
    rounding: int  # of what is allocated, nobody asked for so much
    reserved: int
    split: int
    cached: int
    largest_free: int
    segments: int
    peak_allocated: int
    peak_reserved: int
    phases: tuple[HeldPart, ...]
    sizes: tuple[HeldPart, ...]
    stacks: tuple[HeldStack, ...]
    timeline: tuple[DeviceMoment, ...]
    ran_out: OutOfDeviceMemory | None = None
    others: tuple[OtherSettings, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def unattributed_bytes(self) -> int:
        """What is allocated, and nothing says by which place in the program."""
        return max(0, self.allocated - sum(held.bytes for held in self.stacks))

    @property
    def split_share(self) -> float:
        """Fragmentation: what of the reserved memory lies free between blocks in use."""
        return self.split / self.reserved if self.reserved else 0.0


@dataclass(frozen=True, kw_only=True)
class SnapshotExplanation(ShownInNotebooks):
    """All cards of a snapshot."""

    path: str
    devices: tuple[DeviceExplanation, ...]
    seconds: float = 0.0
