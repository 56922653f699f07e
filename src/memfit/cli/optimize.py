"""`memfit optimize`: make each fix, measure it, and show what it really saves."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memfit.cli.messages import progress
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
from memfit.cli.plan import DOES_NOT_FIT, parse_changes
from memfit.errors import UsageError


def optimize(
    context: typer.Context,
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="A training script, a run spec (run.toml), or package.module:factory. All that "
            "stands after -- goes to the script; without a TARGET, it is the command.",
            show_default=False,
        ),
    ] = "",
    *,
    module: Annotated[
        str, typer.Option("-m", metavar="MODULE", help="A module, as python -m runs it.")
    ] = "",
    goal: Annotated[
        str | None,
        typer.Option(
            metavar="GOAL",
            help="Find the cheapest safe set for a size (8GiB), or for a setting (n_envs=64) "
            "within the limit.",
        ),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a copy of the script with the best set made, or a unified diff where FILE "
            "ends in .diff or .patch.",
        ),
    ] = None,
    limit: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Judge against this (16GiB) instead of this machine."),
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KNOB=VALUE", help="Run with another value of a setting."),
    ] = None,
    select: Annotated[
        list[str] | None,
        typer.Option(metavar="CODES", help="Only fixes of these codes or prefixes (MF011,MF0)."),
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="CODES", help="Not of these codes or prefixes.")
    ] = None,
    safe_only: Annotated[
        bool,
        typer.Option("--safe-only", help="Only fixes that keep training the same to the bit."),
    ] = False,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Run the unchanged target only twice, and not again between the fixes.",
        ),
    ] = False,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="Give up a run that takes longer.")
    ] = 120.0,
    engine: EngineOption = "",
    network: NetworkOption = False,
    form: FormatOption = Format.TERMINAL,
    output: OutputOption = None,
    quiet: QuietOption = False,
) -> None:
    """Make every fix of a run in a child, train a little, and show what it really saves.

    Each fix is made alone, then the best set together: settings changed, parts of memfit.dropins
    put in the place of the library's own, settings of malloc and threads. Each time the target
    trains for the same number of real updates with the same seeds. The table has what a plan
    predicted, what was measured, the time beside that of the unchanged run, and whether all
    parameters were the same to the bit afterwards. The target itself is never edited.

    With --engine ray the runs are made on the nodes of a cluster, and go on where they were after
    memfit was killed.

    \b
    Examples:
      memfit optimize train.py
      memfit optimize train.py --safe-only --write fitted.py
      memfit optimize train.py --goal 8GiB --write fit.diff -- --env Ant-v5
      memfit optimize train.py --goal n_envs=64 --limit 16GiB
      memfit optimize run.toml --select MF011,MF004
      memfit optimize -- python -m rl_zoo3.train --algo ppo --env CartPole-v1

    Exit code 0: well. 3: the goal is not reached, or the run does not fit even so. 1: the target
    itself failed. 2: bad usage or input.
    """
    if module and target:
        raise UsageError(f"-m {module} and {target} are two targets: leave one of them out")
    if not (module or target or context.obj):
        raise UsageError(
            "say what to optimize: a script (train.py), a spec (run.toml), -m MODULE, or a command "
            "after --. See memfit optimize --help"
        )
    limit_bytes = parse_limit(limit)
    knobs = parse_changes(change or [])
    check_timeout(timeout)
    check_output(output, form)
    check_output(write)

    from memfit import render
    from memfit.api import optimize as api

    result = api.optimize(
        module or target,
        module=bool(module),
        args=tuple(context.obj or ()),
        goal=goal,
        limit=limit_bytes,
        knobs=knobs,
        select=_codes(select),
        ignore=_codes(ignore),
        safe_only=safe_only,
        quick=quick,
        timeout=timeout,
        network=network,
        engine=engine,
        write=write,
        progress=progress(quiet=quiet),
    )
    emit(form, output, render.optimize_blocks, render.optimize_json, result)
    missed = result.goal is not None and not result.goal.reached
    if missed or not result.fits:
        raise typer.Exit(DOES_NOT_FIT)


def _codes(words: list[str] | None) -> tuple[str, ...]:
    return tuple(c.strip().upper() for word in words or () for c in word.split(",") if c.strip())
