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
    after: Annotated[Path, typer.Argument(metavar="B", help="The later file.")],
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

    Exit code 0: compared. 2: bad usage or input. 3: grew by more than --fail-if-grew.
    """
    share = _share(fail_if_grew) if fail_if_grew is not None else None
    check_output(output)

    from memfit import render
    from memfit.api import compare as api

    result = api.compare(before, after)
    emit(form, output, render.compare_blocks, render.compare_json, result)
    if share is not None and result.share > share:
        raise typer.Exit(GREW)


def _share(text: str) -> float:
    try:
        value = float(text.strip().removesuffix("%"))
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise UsageError(f"--fail-if-grew {text}: write a share such as 5%")
    return value / 100
