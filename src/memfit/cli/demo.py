"""`memfit demo`: predicted beside measured, on a real training."""

from __future__ import annotations

from memfit.cli.messages import progress
from memfit.cli.output import Format, FormatOption, OutputOption, QuietOption, check_output, emit


def demo(
    form: FormatOption = Format.TERMINAL,
    output: OutputOption = None,
    quiet: QuietOption = False,
) -> None:
    """Plan a real training, run it, and compare.

    Runs a few updates in a child process and shows predicted beside measured, row by row.

    \b
    Examples:
      memfit demo
      memfit demo --format md -o demo.md
    """
    check_output(output)

    from memfit import api, render

    result = api.demo(progress=progress(quiet=quiet))
    emit(
        form,
        output,
        blocks=lambda: render.demo_blocks(result),
        data=lambda: render.demo_json(result),
    )
