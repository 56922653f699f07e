"""`memfit demo`: predicted beside measured, on a real training."""

from __future__ import annotations

from typing import Annotated

import typer

from memfit.cli.messages import progress
from memfit.cli.output import Format, FormatOption, OutputOption, QuietOption, check_output, emit


def demo(
    system: Annotated[
        str | None,
        typer.Argument(
            metavar="[SYSTEM]",
            help="A reference system: drone, fighter, ninja or trader. Without one, a small "
            "stable-baselines3 training.",
            show_default=False,
        ),
    ] = None,
    form: FormatOption = Format.TERMINAL,
    output: OutputOption = None,
    quiet: QuietOption = False,
) -> None:
    """Plan a real training, run it, and compare.

    Runs a few updates in a child process and shows predicted beside measured, row by row.

    \b
    Examples:
      memfit demo
      memfit demo drone
      memfit demo --format md -o demo.md
    """
    check_output(output)

    from memfit import render
    from memfit.api import demo as api

    tell = progress(quiet=quiet)
    if system is not None:
        shown = api.demo_system(system, progress=tell)
        emit(form, output, render.system_demo_blocks, render.system_demo_json, shown)
    else:
        emit(form, output, render.demo_blocks, render.demo_json, api.demo(progress=tell))
