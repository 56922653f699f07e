"""What to paste into a batch system, and finished jobs beside their plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memfit.model import FinishedJob, JobsComparison, MemoryRequest, Plan
from memfit.render.blocks import Block, Code, Heading, Text, Tone, muted, names, numbers, section
from memfit.render.plan import plan_json
from memfit.render.result_json import SCHEMA, picked
from memfit.units import format_bytes

_DOUBTS = {
    "measured": "rows that were measured",
    "derived": "rows from the run's own objects",
    "probed": "rows that were probed and extrapolated",
    "assumed": "rows that are assumed",
    "slack": "slack of malloc",
    "replay_spread": "how far replays of malloc differ",
    "unmatched": "what grows in a way that is not known",
}


def request_blocks(plan: Plan, request: MemoryRequest) -> list[Block]:
    """What to paste, and where its margin comes from."""
    peak, asked = format_bytes(request.peak_bytes), format_bytes(request.memory_bytes)
    return [
        Text(f"Ask for {asked}: the run is expected to peak at {peak}", Tone.GOOD),
        Heading(f"For {request.system}"),
        Code(request.paste),
        *section(
            "What is asked for",
            ("what", *numbers("bytes", "size")),
            [
                _line("expected peak", request.peak_bytes),
                _line(
                    "margin of the upper bound, which covers runs that differ",
                    request.upper_bytes - request.peak_bytes,
                ),
                _line("page tables, which the kernel counts too", request.kernel_bytes),
            ],
            total=_line("all, in whole MiB", request.memory_bytes),
        ),
        *section(
            "What the margin is for: bytes at the peak, by how they are known",
            ("what", *numbers("bytes", "size")),
            [_line(_DOUBTS.get(cause, cause), n) for cause, n in plan.doubt.items() if n],
        ),
        *muted([f"{plan.target}: planned by {plan.method} in {plan.seconds:.1f} s"]),
        *muted(f"note: {note}" for note in plan.notes),
    ]


def _line(what: str, amount: int) -> tuple[str, str, str]:
    return what, f"{amount:,}", format_bytes(amount)


def request_json(plan: Plan, request: MemoryRequest) -> dict[str, Any]:
    """A plan's JSON, and what to ask for."""
    asked = picked(
        request,
        "system",
        "paste",
        "memory_bytes",
        "margin_bytes",
        "kernel_bytes",
        "shared_bytes",
    )
    return {**plan_json(plan), "request": asked}


def jobs_blocks(found: JobsComparison) -> list[Block]:
    """Finished jobs, the largest first."""
    return [
        *_verdict(found),
        *section(
            "Jobs",
            (names("job"), "name", "state", *numbers("asked for", "peak", "against the plan")),
            [_row(found, job) for job in sorted(found.jobs, key=lambda j: -(j.peak_bytes or 0))],
        ),
        *muted(f"note: {note}" for note in found.notes),
    ]


def _verdict(found: JobsComparison) -> Iterator[Block]:
    above, jobs = found.above_upper, len(found.measured)
    planned = (
        f"{found.plan} says {format_bytes(found.planned_bytes)}, "
        f"at most {format_bytes(found.upper_bytes)}"
    )
    if above:
        text = f"{len(above)} of {jobs} jobs took more than the upper bound: {planned}"
        yield Text(text, Tone.BAD)
    elif jobs:
        yield Text(f"All {jobs} jobs stayed within the upper bound: {planned}", Tone.GOOD)
    else:
        yield Text(f"No job has a reading of its memory: {planned}", Tone.BAD)
    if found.median_error is not None and found.largest_bytes is not None:
        yield Text(
            f"The plan is {found.median_error:+.1%} off in the median; the largest job took "
            f"{format_bytes(found.largest_bytes)}"
        )
    if killed := [job for job in found.jobs if job.out_of_memory]:
        yield Text(
            f"{len(killed)} of {len(found.jobs)} jobs were killed for their memory", Tone.BAD
        )


def _row(found: JobsComparison, job: FinishedJob) -> tuple[str, ...]:
    return (
        job.job,
        job.name,
        job.state,
        _size(job.requested_bytes),
        _size(job.peak_bytes),
        "" if job.peak_bytes is None else f"{found.error(job.peak_bytes):+.1%}",
    )


def _size(amount: int | None) -> str:
    return "" if amount is None else format_bytes(amount)


def jobs_json(found: JobsComparison) -> dict[str, Any]:
    """What `memfit compare --sacct --format json` prints."""
    return {
        "schema": SCHEMA,
        "kind": "compare",
        **picked(found, "plan", "upper_bytes", peak_bytes="planned_bytes"),
        "median_error": None if found.median_error is None else round(found.median_error, 6),
        "above_upper": len(found.above_upper),
        "jobs": [
            picked(job, "job", "name", "state", "requested_bytes", "peak_bytes")
            for job in found.jobs
        ],
        "notes": list(found.notes),
    }
