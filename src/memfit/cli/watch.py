"""`memfit watch`: a live view of processes or of a recording."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from memfit.cli.output import (
    Format,
    FormatOption,
    OutputOption,
    check_output,
    emit,
    parse_limit,
    parse_seconds,
)
from memfit.errors import MissingExtra, UsageError

if TYPE_CHECKING:
    from memfit.model import Frame, Targets
    from memfit.render import Block

_MISSED = 3


class View(Protocol):
    """What is shown, a frame at a time."""

    def frame(self) -> Frame:
        """As it is now."""


def watch(
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PID|FILE ...]",
            help="Processes together, or one recording. With --serve each is a run of its own.",
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Print one frame and end.")] = False,
    serve: Annotated[
        bool,
        typer.Option(
            "--serve",
            help="Show it in a browser, on this machine alone; --serve HOST:PORT says where.",
        ),
    ] = False,
    host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="With --serve: another name by which browsers may ask for it."
        ),
    ] = None,
    ray: Annotated[
        bool,
        typer.Option("--ray", help="The Ray cluster of RAY_ADDRESS, or that this machine is in."),
    ] = False,
    every: Annotated[
        str, typer.Option(metavar="TIME", help="How often to look.", show_default=True)
    ] = "1s",
    limit: Annotated[
        str | None, typer.Option(metavar="SIZE", help="The limit to show and to forecast for.")
    ] = None,
    ram: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Target: at most so much per process.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(metavar="N", help="Target: at most so many threads per process.")
    ] = None,
    total: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Target: at most so much in total.")
    ] = None,
    form: FormatOption = Format.TERMINAL,
    output: OutputOption = None,
) -> None:
    """Watch the memory of processes, or of a recording that grows.

    At a terminal a full-screen view: s sorts, f freezes, e explains the process under the cursor,
    q ends. Elsewhere a line each time, until the target has ended. Without a PID, what `memfit run`
    has started. With --serve the same as a web page that opens once, and /metrics for Prometheus,
    until Ctrl-C.

    With --ray the nodes of a cluster, its actors beside the memory that they demand, and on each
    node the object store and libraries once; a process on each node looks, and ends with the view.

    \b
    Examples:
      memfit watch 4711 --ram 15GiB --threads 30 --total 25GiB
      memfit watch night.db
      memfit watch 4711 --once --format json -o frame.json
      memfit watch 4711 night.db --serve
      memfit watch --serve 127.0.0.1:9000
      memfit watch --ray --once

    Exit code 0: well. 2: bad usage or input. 3: with --once, a target is missed.
    """
    seconds = parse_seconds(every)
    limit_bytes = parse_limit(limit)
    if not once and (form is not Format.TERMINAL or output is not None):
        raise UsageError("--format and -o are for one frame: add --once")
    check_output(output, form)

    from memfit.api import watch as api
    from memfit.model import Targets

    aims = Targets(
        process_bytes=parse_limit(ram), process_threads=threads, total_bytes=parse_limit(total)
    )
    if ray:
        if serve or targets:
            raise UsageError("--ray shows a whole cluster: leave out --serve, PIDs and recordings")
        _cluster(once, form, output, seconds, limit_bytes, aims)
        return
    if serve:
        from memfit.cli.watch_page import served

        if once:
            raise UsageError("--serve goes on until Ctrl-C: leave --once out, or --serve")
        served(targets or [], tuple(host or ()), seconds, limit_bytes, aims)
        return
    if host:
        raise UsageError("--host is for the page that --serve shows: add --serve")
    _shown(api.watch(targets or [], limit=limit_bytes, aims=aims), once, form, output, seconds)


def _cluster(
    once: bool,
    form: Format,
    output: Path | None,
    seconds: float,
    limit: int | None,
    aims: Targets,
) -> None:
    from memfit.api.watch_cluster import watch_cluster

    with watch_cluster(limit, aims) as view:
        _shown(view, once, form, output, seconds, elsewhere=True)


def _shown(
    view: View,
    once: bool,
    form: Format,
    output: Path | None,
    seconds: float,
    *,
    elsewhere: bool = False,
) -> None:
    if once:
        _print_once(view, form, output)
    elif sys.stdout.isatty() and sys.stdin.isatty():
        _full_screen(view, seconds, elsewhere=elsewhere)
    else:
        _lines(view, seconds)


def _print_once(view: View, form: Format, output: Path | None) -> None:
    from memfit import render

    frame = view.frame()
    emit(form, output, render.frame_blocks, render.frame_json, frame)
    if any(not target.met for target in frame.targets):
        raise typer.Exit(_MISSED)


def _lines(view: View, seconds: float) -> None:
    from memfit import render

    frame: Frame | None = None
    try:
        while frame is None or not frame.ended:
            if frame is not None:
                time.sleep(seconds)
            frame = view.frame()
            sys.stdout.write(render.frame_line(frame) + "\n")
            sys.stdout.flush()
    except KeyboardInterrupt:  # that is how somebody stops watching
        sys.stdout.write("\n")
    if frame is not None:
        render.to_terminal(render.frame_summary(frame), sys.stdout)


def _full_screen(view: View, seconds: float, *, elsewhere: bool) -> None:
    from memfit import render
    from memfit.api import explain as api

    try:
        from memfit.render.watch_app import WatchApp
    except ImportError:
        raise MissingExtra(
            "the full-screen view needs Textual: pip install 'memfit[watch]', or use --once"
        ) from None

    def explain(pid: int) -> list[Block]:
        if elsewhere:
            return [render.Text(f"on its node: memfit explain {pid}")]
        return render.explain_short(api.explain(pid, inside=False))

    app = WatchApp(view.frame, explain, seconds=seconds)
    app.run()
    if app.latest is not None:  # what is left on the terminal
        render.to_terminal(render.frame_summary(app.latest), sys.stdout)
    if app.failure is not None:
        raise app.failure
