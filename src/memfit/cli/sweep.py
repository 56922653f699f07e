"""`memfit sweep`: measured peaks over the values of one setting."""

from __future__ import annotations

from typing import Annotated

import typer

from memfit.cli.messages import bar, progress
from memfit.cli.output import (
    EngineOption,
    Format,
    FormatOption,
    NetworkOption,
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
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="TARGET",
            help="A training script, a run spec (run.toml), or package.module:factory. Without "
            "one, the command after -- is measured.",
            show_default=False,
        ),
    ] = None,
    *,
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
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Do not go on with a sweep that was killed.")
    ] = False,
    engine: EngineOption = "",
    network: NetworkOption = False,
    form: FormatOption = Format.TERMINAL,
    output: OutputOption = None,
    quiet: QuietOption = False,
) -> None:
    """Measure the peak of a training or of any program over the values of one setting.

    A TARGET is built with each value (n_envs, n_steps, batch_size, buffer_size ..., or a knob of
    the spec) in a child that cannot take this machine down, learns there for two updates, and is
    planned, so that measured and planned stand side by side. The replay buffer of an off-policy
    run is filled as far as the run will fill it. A script that takes the setting as an argument
    gets it after --, as {NAME}.

    Without a TARGET, the command after -- runs once for each value, which takes the place of {NAME}
    in it. With a spec and a command, the command is measured and the spec planned.

    The sweep ends with the first run that goes over the limit. A line through the peaks gives what
    is fixed, what each unit adds, and the largest value for other hardware. A sweep that was killed
    goes on where it was when the same is asked again.

    With --engine ray the runs are made on the nodes of the cluster that RAY_ADDRESS names, or that
    this machine is in, as many at once as have room there; nodes need the same files.

    \b
    Examples:
      memfit sweep train.py --over n_envs=1,10,100,1000
      memfit sweep train.py --over envs=1..64 -- --num-envs {envs}
      memfit sweep --over agents=100,1000,5000 -- python train.py --agents {agents}
      memfit sweep drone.toml --over agents=10..1000 --limit 4GiB -- \\
          python -m memfit.systems.drone --as-described --iterations 2 --agents {agents}

    Exit code 0: measured. 1: the command itself failed. 2: bad usage or input.
    """
    command = tuple(context.obj or ())
    limit_bytes = parse_limit(limit)
    check_timeout(timeout)
    check_output(output, form)

    from memfit import render
    from memfit.api import sweep as api

    result = api.sweep(
        command,
        target=target,
        over=over,
        limit=limit_bytes,
        on=tuple(on or ()),
        timeout=timeout,
        network=network,
        engine=engine,
        fresh=fresh,
        progress=progress(quiet=quiet),
        watching=bar(quiet=quiet),
    )
    emit(form, output, render.sweep_blocks, render.sweep_json, result)
    if any(point.outcome.value == "failed" for point in result.points):
        raise typer.Exit(FAILED)
