"""What to paste into a batch system, from a plan; and finished jobs beside their plan."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

from memfit.errors import UsageError
from memfit.model import JobsComparison, MemoryRequest, Plan
from memfit.model.json_loader import from_json
from memfit.model.memory_request import request_of

SYSTEMS = ("slurm", "kubernetes", "ray", "docker")
_MOST_BYTES = 256 * 2**20
_SAMPLED = (
    "Slurm looks at memory every 30 s unless told otherwise, so that a short peak may be higher "
    "than a job's figure; and it adds what processes share once for each, unless it counts by PSS"
)
_NOT_MEASURED = "{count} ended before Slurm had a reading"


def check_system(system: str) -> None:
    """Refuse a system that nothing is known of, before the run is planned."""
    if system not in SYSTEMS:
        raise UsageError(f"--for {system}: memfit knows {', '.join(SYSTEMS)}. Choose one of them")


def memory_request(plan: Plan, system: str) -> MemoryRequest:
    """What a plan's run has to be given, in the words of a batch system."""
    check_system(system)
    request = request_of(plan, system)
    return replace(request, paste=import_module(f"memfit.integrations.{system}").paste(request))


def compare_jobs(plan: Path | str, accounted: Path | str) -> JobsComparison:
    """A plan's JSON beside the jobs of a file that `sacct -P` wrote."""
    from memfit.integrations.slurm import finished_jobs

    planned = _plan(Path(plan))
    jobs = finished_jobs(_text(Path(accounted)))
    if not jobs:
        raise UsageError(f"{accounted} has no job that has ended: wait until one has")
    found = JobsComparison(
        plan=str(plan), planned_bytes=planned.peak_bytes, upper_bytes=planned.upper_bytes, jobs=jobs
    )
    without = len(jobs) - len(found.measured)
    notes = (_SAMPLED, *([_NOT_MEASURED.format(count=without)] if without else []))
    return replace(found, notes=notes)


@dataclass(frozen=True, kw_only=True)
class _Planned:
    """What is used of a plan's JSON."""

    kind: str
    peak_bytes: int
    upper_bytes: int

    def __post_init__(self) -> None:
        if self.kind != "plan" or not 0 < self.peak_bytes <= self.upper_bytes < 2**63:
            raise ValueError("no plan")


def _plan(path: Path) -> _Planned:
    try:
        return from_json(_Planned, json.loads(_text(path)), foreign=True)
    except (ValueError, TypeError, RecursionError):
        raise UsageError(
            f"{path} is no plan: write one by memfit plan TARGET --format json -o {path.name}"
        ) from None


def _text(path: Path) -> str:
    if not os.path.isfile(path):  # noqa: PTH113  # a name may be too long
        raise UsageError(f"there is no file {path}: name one that is there")
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise UsageError(f"{path} has more than 256 MiB: give the jobs of one study at a time")
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
