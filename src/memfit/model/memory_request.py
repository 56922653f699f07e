"""What to ask a batch system for, so that a planned run is not killed by its limit."""

from __future__ import annotations

from dataclasses import dataclass

from memfit.model.ledger import Place
from memfit.model.plan import Plan

_MIB = 2**20
PAGES_OF_A_TABLE = 512  # 8 bytes of page table for each page of 4 KiB


@dataclass(frozen=True, kw_only=True)
class MemoryRequest:
    """The memory of one run, as a memory group of the kernel counts it.

    `upper_bytes` is the plan's upper bound, `kernel_bytes` the page tables of so much memory, and
    `shared_bytes` the part of it that lies in /dev/shm.
    """

    system: str
    paste: str
    peak_bytes: int
    upper_bytes: int
    kernel_bytes: int
    shared_bytes: int

    @property
    def memory_bytes(self) -> int:
        """All of it, in whole MiB."""
        return whole_mib(self.upper_bytes + self.kernel_bytes) * _MIB

    @property
    def margin_bytes(self) -> int:
        """What is asked for beyond the expected peak."""
        return self.memory_bytes - self.peak_bytes

    @property
    def memory_mib(self) -> int:
        return self.memory_bytes // _MIB

    @property
    def shared_mib(self) -> int:
        return whole_mib(self.shared_bytes)


def request_of(plan: Plan, system: str) -> MemoryRequest:
    """What a plan asks for, with nothing to paste yet."""
    rows = [c for c in plan.ledger.components if c.place is Place.SHARED]
    shared = (
        sum(plan.ledger.bytes_of(c) for c in rows if c.alive_in(moment))
        for moment in plan.ledger.moments
    )
    return MemoryRequest(
        system=system,
        paste="",
        peak_bytes=plan.peak_bytes,
        upper_bytes=plan.upper_bytes,
        kernel_bytes=-(-plan.upper_bytes // PAGES_OF_A_TABLE),
        shared_bytes=max(shared, default=0),
    )


def whole_mib(amount: int) -> int:
    """An amount in MiB, rounded up."""
    return -(-amount // _MIB)
