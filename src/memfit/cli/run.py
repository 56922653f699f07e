"""`memfit run`: any command, recorded and guarded."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memfit.cli.output import parse_limit, parse_seconds

if TYPE_CHECKING:
    from memfit.model import Forecast, Reading

_LINE_SECONDS = 0.5


def run(
    context: typer.Context,
    limit: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="End the command above this (20GiB): SIGTERM, SIGKILL."),
    ] = None,
    grace: Annotated[
        str, typer.Option(metavar="TIME", help="How long it may take to end after SIGTERM.")
    ] = "10s",
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Record into this file (memfit-SCRIPT.PID.db beside you).",
        ),
    ] = None,
    no_file: Annotated[
        bool, typer.Option("--no-file", help="Keep no recording: only the lines at the end.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("-q", "--quiet", help="Nothing on standard error of memfit's own.")
    ] = False,
) -> None:
    """Run a command, record its memory, and keep it below a limit.

    Runs the command after -- as it is: same terminal, same signals, same exit code. The memory of
    its whole process tree is recorded from outside into one file, which `memfit explain FILE`,
    `memfit watch FILE` and `memfit compare A B` read, also while it grows. While it runs,
    `memfit explain PID` names the holders inside every Python of it.

    \b
    Examples:
      memfit run -- python train.py --envs 8
      memfit run --limit 20GiB -o night.db -- python train.py
      memfit run --no-file -- bash experiments.sh

    Exit code: the command's own; 128 + n where signal n ended it. 2: it cannot be started.
    """
    command = tuple(context.obj or ())
    limit_bytes = parse_limit(limit)
    seconds = parse_seconds(grace)

    from memfit import render
    from memfit.api import compare as recordings
    from memfit.api import run as api

    place = None if no_file else output or api.default_recording(command)
    line = _Line(quiet=quiet)
    trace = api.run(
        command,
        limit=limit_bytes,
        record=place,
        grace=seconds,
        say=line.say,
        live=line.live,
    )
    line.clear()
    if not quiet:
        where = str(place) if place else ""
        render.to_terminal(
            render.trace_summary(trace, recordings.outlook(trace), where), sys.stderr
        )
    raise typer.Exit(trace.exit_code or 0)


class _Line:
    """One line on standard error that renews itself, at a terminal only."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet
        self.shown = sys.stderr.isatty() and not quiet
        self._next = 0.0

    def say(self, text: str) -> None:
        self.clear()
        if not self.quiet:
            sys.stderr.write(f"memfit: {text}\n")
            sys.stderr.flush()

    def live(self, reading: Reading, forecast: Forecast | None) -> None:
        if not self.shown or time.monotonic() < self._next:
            return
        from memfit.render import live_line

        self._next = time.monotonic() + _LINE_SECONDS
        sys.stderr.write(f"\r\x1b[2K{live_line(reading, forecast)}")
        sys.stderr.flush()

    def clear(self) -> None:
        if self.shown:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
