"""`memfit explain`: where the memory of a live process tree, a recording or a card goes."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from memfit.cli.messages import progress
from memfit.cli.output import (
    Format,
    FormatOption,
    OutputOption,
    QuietOption,
    check_output,
    emit,
    parse_limit,
    parse_seconds,
)
from memfit.errors import UsageError

OVER = 3


def explain(
    target: Annotated[
        str,
        typer.Argument(
            metavar="PID|FILE",
            help="The process, a recording of one, a snapshot of torch, or a report (.html).",
        ),
    ],
    no_children: Annotated[
        bool, typer.Option("--no-children", help="This process alone, not those below it.")
    ] = False,
    no_inside: Annotated[
        bool, typer.Option("--no-inside", help="By layer only: do not look for who holds it.")
    ] = False,
    native: Annotated[
        bool | None,
        typer.Option(
            "--native/--no-native",
            help="Name arrays, tensors and what C and C++ hold, by following pointers (seconds). "
            "By default where there is time.",
            show_default=False,
        ),
    ] = None,
    wait: Annotated[
        str,
        typer.Option(metavar="TIME", help="How long processes that listen may take to tell."),
    ] = "4s",
    attach: Annotated[
        bool,
        typer.Option(
            "--attach", help="Make a Python 3.14 process listen, by the interpreter's own call."
        ),
    ] = False,
    for_: Annotated[
        str | None,
        typer.Option("--for", metavar="TIME", help="Read twice, so far apart (10s): what grew?"),
    ] = None,
    limit: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Compare with this instead of the process's own limit."),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Every row, holder, thread and setting.")
    ] = False,
    form: FormatOption = Format.TERMINAL,
    output: OutputOption = None,
    quiet: QuietOption = False,
) -> None:
    """Where the memory of a running training goes, without touching it.

    Reads what the kernel says about the process and all below it: libraries, Python's objects,
    malloc's heap, large blocks with how much of them is filled, stacks, shared memory, workers.
    The rows add up to the tree's memory, pages that several share counted once.

    Which objects hold it is read from outside too (Python 3.11 to 3.13), without a pause:
    model.rollout_buffer.observations, envs[3].history ... A process started by `memfit run -- CMD`,
    or which called memfit.listen(), is also asked, and tells what it holds twice.

    A snapshot of torch.cuda.memory._dump_snapshot() tells what held a card's memory at its peak, or
    where it ran out, and which settings of the allocator would have avoided that.

    \b
    Examples:
      memfit explain 4711
      memfit explain 4711 --for 10s
      memfit explain night.db
      memfit explain snapshot.pickle
      memfit explain plan.html
      memfit explain $(pgrep -n -f train.py) --format json -o explained.json

    Exit code 0: explained. 2: no such process, or not yours to read. 3: over --limit.
    """
    limit_bytes = parse_limit(limit)
    seconds = parse_seconds(for_) if for_ is not None else 0.0
    check_output(output, form)

    from memfit import render
    from memfit.api import compare as recordings
    from memfit.api import explain as api
    from memfit.api import explain_report as reports
    from memfit.api import explain_snapshot as snapshots

    if not target.isdecimal():
        if not os.path.isfile(target):  # noqa: PTH113  # a name may be too long
            raise UsageError(
                f"{target!r} is neither a PID nor a file: give the number of a running process, "
                "for instance from `pgrep -af python`, a recording, a snapshot of torch, or a "
                "report that was written with --format html"
            )
        if reports.is_report_file(target):
            report = reports.report(target)
            emit(form, output, lambda: list(report.blocks), lambda: report.data)
            return
        if snapshots.is_snapshot(target):
            cards = snapshots.explain_snapshot(target, progress(quiet=quiet))
            blocks = render.every_snapshot_block if every else render.snapshot_blocks
            emit(form, output, blocks, render.snapshot_json, cards)
            return
        trace, forecast = recordings.recorded(target)
        emit(form, output, render.trace_blocks, render.trace_json, trace, forecast)
        return
    result = api.explain(
        int(target),
        children=not no_children,
        inside=not no_inside,
        native=native,
        attach=attach,
        wait=parse_seconds(wait),
        within=api.left_of_start(),
        seconds=seconds,
        limit=limit_bytes,
        progress=progress(quiet=quiet),
    )
    rows = render.explain_blocks if every else render.explain_short
    emit(form, output, rows, render.explain_json, result)
    if limit_bytes is not None and result.pss_bytes > limit_bytes:
        raise typer.Exit(OVER)
