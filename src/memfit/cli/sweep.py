"""`memfit sweep`: measured peaks over the values of one setting."""

from __future__ import annotations

from typing import Annotated

import typer

from memfit.cli.messages import progress
from memfit.cli.output import (
    Format,
    FormatOption,
    OutputOption,
    QuietOption,
    check_output,
    check_timeout,
    emit,
    parse_limit,
)

FAILED = 1


def sweep(
    context: typer.Context,
    over: Annotated[
        str,
        typer.Option(
            metavar="NAME=VALUES",
            help="Values apart by commas (agents=100,1000), or a range that doubles "
            "(agents=1..20000).",
        ),
    ],
    limit: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="End a run that goes above this (16GiB)."),
    ] = None,
    on: Annotated[
        list[str] | None,
        typer.Option(metavar="HARDWARE", help="Largest value for this: rtx-4090, 24GiB ..."),
    ] = None,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="End a run that takes longer.")
    ] = 600.0,
    form: FormatOption = Format.TERMINAL,
    output: OutputOption = None,
    quiet: QuietOption = False,
) -> None:
    """Measure a program's peak over the values of one setting.

    Runs the command after -- once for each value, which takes the place of {NAME} in it, and ends
    with the first run that goes over the limit. A line through the peaks gives what is fixed and
    what each unit adds.

    \b
    Examples:
      memfit sweep --over agents=100,1000,5000 -- python train.py --agents {agents}
      memfit sweep --over n=1..4096 --limit 4GiB --format json -- ./simulate -n {n}

    Exit code 0: measured. 1: the command itself failed. 2: bad usage or input.
    """
    command = tuple(context.obj or ())
    limit_bytes = parse_limit(limit)
    check_timeout(timeout)
    check_output(output)

    from memfit import api, render

    result = api.sweep(
        command,
        over=over,
        limit=limit_bytes,
        on=tuple(on or ()),
        timeout=timeout,
        progress=progress(quiet=quiet),
    )
    emit(
        form,
        output,
        blocks=lambda: render.sweep_blocks(result),
        data=lambda: render.sweep_json(result),
    )
    if any(point.outcome.value == "failed" for point in result.points):
        raise typer.Exit(FAILED)
