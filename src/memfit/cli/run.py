"""`memfit run`: any command, recorded and guarded."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memfit.cli.output import parse_limit, parse_seconds
from memfit.cli.standard_error import Page, StandardError
from memfit.errors import visible

if TYPE_CHECKING:
    from memfit.model import Forecast, Reading
    from memfit.render import Block

_LINE_SECONDS = 0.5
_CLEAR = "\r\x1b[2K"


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
    force: Annotated[
        bool, typer.Option("-f", "--force", help="Replace a recording that is there already.")
    ] = False,
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
    descriptors = _inherited()
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
        force=force,
        grace=seconds,
        say=line.say,
        live=line.live,
        descriptors=descriptors,
    )
    with suppress(Exception):  # no room, no descriptors: the exit code is passed on all the same
        where = str(place) if place and place.exists() else ""
        line.end(render.trace_summary(trace, recordings.outlook(trace), where))
    raise typer.Exit(trace.exit_code or 0)


def _inherited() -> list[int]:
    """What a shell, make or flock has opened for the command; memfit's own are never inherited."""
    found = []
    with suppress(OSError):
        for number in map(int, os.listdir("/proc/self/fd")):
            with suppress(OSError):  # by which they were listed
                if number > 2 and os.get_inheritable(number):
                    found.append(number)
    return found


class _Line:
    """What memfit says on standard error: sentences and, where it is alone there, a live line.

    The line renews itself. It is for a terminal on which this job is in the foreground and that no
    process of the command has open: on one that is shared it would be written over a prompt, a
    progress bar or a log.
    """

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet
        self._error = StandardError()
        self._shown = False
        self._next = 0.0

    def say(self, text: str) -> None:
        if not self.quiet:
            self._error.write(f"{self._cleared()}memfit: {visible(text)}\n")

    def live(self, reading: Reading, forecast: Forecast | None) -> None:
        if self.quiet or not self._error.isatty() or time.monotonic() < self._next:
            return
        from memfit.api.run import terminal_in_use
        from memfit.render import live_line

        self._next = time.monotonic() + _LINE_SECONDS
        if not self._error.is_ours() or terminal_in_use():
            self._shown = False
            return
        self._shown = True
        self._error.write(f"{_CLEAR}{live_line(reading, forecast)}")

    def end(self, blocks: list[Block]) -> None:
        """The last words."""
        if not self.quiet:
            from memfit.render import to_terminal

            page = Page(self._error)
            to_terminal(blocks, page)
            self._error.write(self._cleared() + page.getvalue())
        self._error.close()

    def _cleared(self) -> str:
        shown, self._shown = self._shown, False
        return _CLEAR if shown and self._error.is_ours() else ""
