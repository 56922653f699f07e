"""What torch writes about a card's memory: segments, their blocks, and what happened to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class StackFrame:
    """One call of a stack."""

    file: str
    line: int
    function: str


Stack = tuple[StackFrame, ...]  # the innermost call first


@dataclass(frozen=True, slots=True)
class DeviceEvent:
    """One entry of the allocator's history; an `oom` has what was asked and what was free."""

    action: str
    address: int
    size: int
    stream: int = 0
    pool: str = ""
    stack: Stack = ()
    time: int = 0  # in microseconds
    free: int = 0


@dataclass(frozen=True, slots=True)
class DeviceBlock:
    """A part of a segment: in use, waiting for a stream, or free."""

    address: int
    size: int
    requested: int
    allocated: bool
    waits: bool = False
    stack: Stack = ()

    @property
    def busy(self) -> bool:
        return self.allocated or self.waits


@dataclass(frozen=True, slots=True)
class DeviceSegment:
    """Memory that the driver gave at once."""

    address: int
    size: int
    stream: int
    small: bool
    blocks: tuple[DeviceBlock, ...]
    expandable: bool = False
    pool: str = ""


@dataclass(frozen=True, slots=True)
class Annotation:
    """A named stretch of the program, such as a step of an optimizer."""

    name: str
    begins: bool
    time: int


@dataclass(frozen=True, kw_only=True)
class DeviceSnapshot:
    """One card: its segments at the end, and the events that led there as far as recorded."""

    device: int
    segments: tuple[DeviceSegment, ...]
    events: tuple[DeviceEvent, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)
    annotations: tuple[Annotation, ...] = ()
