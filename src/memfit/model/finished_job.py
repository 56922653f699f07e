"""Jobs that a batch system has finished, held against the plan of their run."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from memfit.model.notebook import ShownInNotebooks


@dataclass(frozen=True, kw_only=True)
class FinishedJob:
    """One job as its system has accounted for it; None where it says nothing."""

    job: str
    name: str
    state: str
    requested_bytes: int | None
    peak_bytes: int | None

    @property
    def out_of_memory(self) -> bool:
        return self.state.startswith("OUT_OF_ME")


@dataclass(frozen=True, kw_only=True)
class JobsComparison(ShownInNotebooks):
    """A plan beside the jobs that ran what it planned."""

    plan: str
    planned_bytes: int
    upper_bytes: int
    jobs: tuple[FinishedJob, ...]
    notes: tuple[str, ...] = ()

    @property
    def measured(self) -> tuple[FinishedJob, ...]:
        return tuple(job for job in self.jobs if job.peak_bytes is not None)

    @property
    def above_upper(self) -> tuple[FinishedJob, ...]:
        return tuple(job for job in self.jobs if (job.peak_bytes or 0) > self.upper_bytes)

    @property
    def largest_bytes(self) -> int | None:
        return max(
            (job.peak_bytes for job in self.jobs if job.peak_bytes is not None), default=None
        )

    @property
    def share(self) -> float:
        """By how much the largest job is above the plan's peak, as a share of it."""
        return 0.0 if self.largest_bytes is None else self.error(self.largest_bytes)

    @property
    def median_error(self) -> float | None:
        """What is planned against what jobs took, as shares of the latter."""
        taken = [job.peak_bytes for job in self.measured if job.peak_bytes]
        return median(self.planned_bytes / peak - 1 for peak in taken) if taken else None

    def error(self, peak_bytes: int) -> float:
        """By how much a job is above the plan's peak, as a share of it."""
        return peak_bytes / self.planned_bytes - 1
