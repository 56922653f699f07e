"""Slurm: the line of a job's script that asks for memory, and jobs as `sacct -P` tells them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memfit.errors import UsageError, visible_line
from memfit.model import FinishedJob, MemoryRequest
from memfit.units import GIB, KIB, MIB, TIB

_NEEDED = ("JobID", "State", "MaxRSS")
FIELDS = "JobID,JobName,State,ReqMem,MaxRSS,TRESUsageInTot"
COMMAND = f"sacct -P --format={FIELDS} -j JOB"
_UNITS = {"": 1, "K": KIB, "M": MIB, "G": GIB, "T": TIB, "P": 1024 * TIB}
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)([KMGTP]?)[nc?]?")
_MEMORY = re.compile(r"(?:^|,)mem=([^,]+)")
_UNFINISHED = ("RUNNING", "PENDING", "SUSPENDED", "REQUEUED", "CONFIGURING")


def paste(request: MemoryRequest) -> str:
    """What goes into the script of a job."""
    return f"#SBATCH --mem={request.memory_mib}M\n"


def finished_jobs(text: str) -> tuple[FinishedJob, ...]:
    """The jobs of `sacct -P`, each with the largest of its steps."""
    lines = text.splitlines()
    names = lines[0].split("|") if lines else []
    if missing := [name for name in _NEEDED if name not in names]:
        raise UsageError(
            f"this is no output of sacct -P with {', '.join(missing)}: write it by {COMMAND} > FILE"
        )
    jobs: dict[str, list[dict[str, str]]] = {}
    for row in _rows(names, lines[1:]):
        jobs.setdefault(row["JobID"].partition(".")[0], []).append(row)
    return tuple(_job(job, rows) for job, rows in jobs.items() if _has_ended(rows))


def _rows(names: list[str], lines: list[str]) -> Iterator[dict[str, str]]:
    for number, line in enumerate(lines, 2):
        # Names of jobs may have a | too, and stand in a column of their own.
        values = line.split("|")
        if extra := len(values) - len(names):
            at = names.index("JobName") if "JobName" in names else -1
            if extra < 0 or at < 0:
                raise UsageError(
                    f"line {number} has {len(values)} columns of {len(names)}: "
                    f"write the file by {COMMAND} > FILE"
                )
            values[at : at + extra + 1] = ["|".join(values[at : at + extra + 1])]
        yield dict(zip(names, values, strict=True))


def _has_ended(rows: list[dict[str, str]]) -> bool:
    return not rows[0]["State"].startswith(_UNFINISHED)


def _job(job: str, rows: list[dict[str, str]]) -> FinishedJob:
    peaks = [peak for row in rows if (peak := _step_bytes(row)) is not None]
    asked = [row["ReqMem"] for row in rows if row.get("ReqMem")]
    return FinishedJob(
        job=visible_line(job),
        name=visible_line(rows[0].get("JobName", "")),
        state=visible_line(rows[0]["State"]),
        # For each of its processors, the amount says nothing without their number.
        requested_bytes=_bytes(asked[0]) if asked and not asked[0].endswith("c") else None,
        peak_bytes=max(peaks, default=None),
    )


def _step_bytes(row: dict[str, str]) -> int | None:
    """What a step took: all its tasks together where that was told, else its largest task."""
    told = _MEMORY.search(row.get("TRESUsageInTot", ""))
    return _bytes(told.group(1)) if told else _bytes(row["MaxRSS"])


def _bytes(text: str) -> int | None:
    """`1234K`, `1.50G`, `4000M`, `16Gn`: bytes, in powers of 1,024; None for nothing or zero."""
    match = _AMOUNT.fullmatch(text.strip())
    if match is None:
        return None
    whole, _, decimals = match.group(1).partition(".")
    return int(whole + decimals) * _UNITS[match.group(2)] // 10 ** len(decimals) or None
