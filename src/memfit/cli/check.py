"""`memfit check`: what scripts, specs, runs and recordings waste, as a linter says it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from memfit.cli.messages import progress
from memfit.cli.output import (
    Format,
    NetworkOption,
    OutputOption,
    QuietOption,
    check_output,
    check_timeout,
    emit,
    emit_text,
    parse_limit,
)
from memfit.errors import UsageError

FOUND = 5


class CheckFormat(StrEnum):
    """The forms of findings."""

    TERMINAL = "terminal"
    MD = "md"
    JSON = "json"
    HTML = "html"
    SARIF = "sarif"
    GITHUB = "github"


class FailOn(StrEnum):
    """From which severity on the exit code is 5."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    NEVER = "never"


def check(
    context: typer.Context,
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TARGET ...",
            help="Scripts, directories of them, recordings (night.db), or a run spec (run.toml).",
            show_default=False,
        ),
    ] = None,
    *,
    run: Annotated[
        bool,
        typer.Option("--run", help="Also look at the objects that a script makes, as plan does."),
    ] = False,
    select: Annotated[
        list[str] | None,
        typer.Option(metavar="CODES", help="Only these codes or prefixes (MF2,MF301); ALL."),
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="CODES", help="Not these codes or prefixes.")
    ] = None,
    fail_on: Annotated[
        FailOn | None,
        typer.Option(
            "--fail-on", help="Exit code 5 from this severity on (error).", show_default=False
        ),
    ] = None,
    explain: Annotated[
        str | None, typer.Option(metavar="CODE", help="What this code is about, and the fix.")
    ] = None,
    limit: Annotated[
        str | None, typer.Option(metavar="SIZE", help="With --run: judge against this (16GiB).")
    ] = None,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="With --run: give up after so long.")
    ] = 120.0,
    network: NetworkOption = False,
    form: Annotated[
        CheckFormat, typer.Option("--format", help="How to show findings.", show_default=True)
    ] = CheckFormat.TERMINAL,
    output: OutputOption = None,
    quiet: QuietOption = False,
) -> None:
    """What scripts, specs, runs and recordings waste, and what would help.

    A script is read and never run: by its text alone. With --run its objects are looked at too, in
    a child, as `memfit plan` does. A recording of `memfit run` tells what it proves. Settings are
    in [tool.memfit] of the nearest pyproject.toml (select, ignore, exclude, fail-on);
    `# memfit: ignore[MF203]` on a line keeps it quiet.

    \b
    Examples:
      memfit check train.py
      memfit check scripts/ --select MF2,MF301 --fail-on warning
      memfit check --explain MF203
      memfit check train.py --run -- --env Ant-v5
      memfit check night.db --fail-on warning
      memfit check . --format sarif -o findings.sarif

    Exit code 0: well. 5: findings at or above --fail-on. 2: bad usage or input.
    """
    check_output(output, Format.HTML if form is CheckFormat.HTML else Format.TERMINAL)
    limit_bytes = parse_limit(limit)
    check_timeout(timeout)

    from memfit import render
    from memfit.api import check as api

    if explain is not None:
        if form in (CheckFormat.SARIF, CheckFormat.GITHUB):
            raise UsageError(f"--explain has no form {form}: use terminal, md, json or html")
        emit(
            Format(form.value),
            output,
            render.page_blocks,
            render.page_json,
            api.explain_code(explain),
        )
        return
    if not targets:
        raise UsageError(
            "say what to check: a script (train.py), a directory, a spec (run.toml), a recording"
        )
    chosen, left_out = _codes(select), _codes(ignore)
    settings = api.settings_for(targets, chosen, left_out)
    chosen, left_out = chosen or settings.select, left_out + settings.ignore
    if run or any(map(api.is_run, targets)):
        if len(targets) > 1:
            raise UsageError("a run is checked alone: name one script with --run, or one spec")
        result = api.check_run(
            targets[0],
            args=tuple(context.obj or ()),
            select=chosen,
            ignore=left_out,
            limit=limit_bytes,
            timeout=timeout,
            network=network,
            progress=progress(quiet=quiet),
        )
    else:
        result = api.check(targets, select=chosen, ignore=left_out, exclude=settings.exclude)
    if form is CheckFormat.SARIF:
        emit_text(output, render.check_sarif(result))
    elif form is CheckFormat.GITHUB:
        emit_text(output, render.check_github(result))
    else:
        emit(Format(form.value), output, render.check_blocks, render.check_json, result)
    level = fail_on or FailOn(settings.fail_on)
    if level is not FailOn.NEVER and api.reaches(result, level.value):
        raise typer.Exit(FOUND)


def _codes(words: list[str] | None) -> tuple[str, ...]:
    return tuple(c.strip().upper() for word in words or () for c in word.split(",") if c.strip())
