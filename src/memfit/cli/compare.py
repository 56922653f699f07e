"""`memfit compare`: two recordings or results, what grew and what shrank."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memfit.cli.output import Format, FormatOption, OutputOption, check_output, emit
from memfit.errors import UsageError

GREW = 3


def compare(
    before: Annotated[Path, typer.Argument(metavar="A", help="The earlier file.")],
    after: Annotated[
        Path | None, typer.Argument(metavar="B", help="The later file.", show_default=False)
    ] = None,
    sacct: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Hold jobs that Slurm has finished (sacct -P) against the plan A instead.",
        ),
    ] = None,
    fail_if_grew: Annotated[
        str | None,
        typer.Option(metavar="SHARE", help="Exit code 3 where the peak grew by more (5%)."),
    ] = None,
    form: FormatOption = Format.TERMINAL,
    output: OutputOption = None,
) -> None:
    """What grew and what shrank between two runs.

    Takes recordings of `memfit run`, and results that `memfit plan` or `memfit explain` wrote with
    `--format json -o FILE`, in any combination.

    \b
    Examples:
      memfit compare yesterday.db today.db
      memfit compare plan-before.json plan-after.json --fail-if-grew 5%
      memfit compare plan.json --sacct jobs.txt

    Exit code 0: compared. 2: bad usage or input. 3: grew by more than --fail-if-grew.
    """
    if (after is None) == (sacct is None):
        raise UsageError(
            "compare takes two files, A and B, or one plan and --sacct FILE. "
            "See memfit compare --help"
        )
    share = _share(fail_if_grew) if fail_if_grew is not None else None
    check_output(output, form)

    from memfit import render
    from memfit.api import compare as api
    from memfit.api.memory_request import compare_jobs

    grew: float
    if sacct is not None:
        jobs = compare_jobs(before, sacct)
        emit(form, output, render.jobs_blocks, render.jobs_json, jobs)
        grew = jobs.share
    elif after is not None:
        result = api.compare(before, after)
        emit(form, output, render.compare_blocks, render.compare_json, result)
        grew = result.share
    if share is not None and grew > share:
        raise typer.Exit(GREW)


def _share(text: str) -> float:
    try:
        value = float(text.strip().removesuffix("%"))
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise UsageError(f"--fail-if-grew {text}: write a share such as 5%")
    return value / 100
