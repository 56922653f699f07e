"""The `memfit` program: its commands, and how errors become messages and exit codes."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer

from memfit.cli.check import check
from memfit.cli.compare import compare
from memfit.cli.demo import demo
from memfit.cli.explain import explain
from memfit.cli.export import export
from memfit.cli.messages import report, report_usage
from memfit.cli.optimize import optimize
from memfit.cli.plan import SETTINGS, plan
from memfit.cli.profile import profile
from memfit.cli.run import run
from memfit.cli.sweep import sweep
from memfit.cli.watch import watch
from memfit.errors import MemfitError

# What typer raises about the words of a command line; it exports only a special case of it.
_WrongWords: Any = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)
# Plain help loads nothing of rich, so that it answers at once.
app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.command(context_settings=SETTINGS)(plan)
for command in (sweep, run, explain, watch, export, profile, compare, check, optimize, demo):
    app.command()(command)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"memfit {version('memfit')}")
        raise typer.Exit


@app.callback()
def memfit(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Will this reinforcement-learning run fit into memory? Find out before it starts.

    \b
    memfit plan train.py                       predict the peak of a training script
    memfit plan run.toml                       the same from a run spec
    memfit sweep --over n=1..64 -- CMD {n}     measure a program's peak over a setting
    memfit run --limit 20GiB -- CMD            record any command, and keep it below a limit
    memfit explain PID                         where a running training's memory goes
    memfit watch PID                           a live view, with targets and a forecast
    memfit watch PID --serve                   the same in a browser
    memfit export night.db --to csv            a recording for TensorBoard, Prometheus, tables
    memfit profile CartPole-v1                 step an env: does it leak, what does one cost
    memfit compare A B                         two recordings or results: what grew
    memfit check train.py                      what a script wastes, by its text alone
    memfit optimize train.py                   make each fix, measure what it saves
    memfit demo                                plan a real training, run it, compare
    memfit demo drone                          the same with a reference system

    Exit codes: 0 well, 1 the target itself failed, 2 bad usage or input, 3 does not fit, 4 it
    leaks, 5 findings.
    """


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    own, script = _split(sys.argv[1:] if argv is None else argv)
    try:
        with _ended_by_signals():
            # Not standalone: what was wrong with the words is told here, not as the words are.
            return app(own, prog_name="memfit", obj=script, standalone_mode=False) or 0
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except MemfitError as error:
        report(error)
        return error.exit_code
    except _WrongWords as error:
        report_usage(error)
        return int(error.exit_code)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let a signal that ends memfit unwind it, so that it takes its children along."""

    def end(number: int, frame: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    ours = []
    if threading.current_thread() is threading.main_thread():  # no other may set them
        usual = (signal.SIGTERM, signal.SIGHUP)
        ours = [number for number in usual if signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _split(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """memfit's own arguments, and those after `--`, which belong to the script."""
    words = list(argv)
    at = words.index("--") if "--" in words else len(words)
    return list(_with_values_apart(words[:at])), words[at + 1 :]


def _with_values_apart(words: Sequence[str]) -> Iterator[str]:
    """`--serve=HOST:PORT` in two words: typer knows no option whose value may be missing."""
    for word in words:
        yield from word.split("=", 1) if word.startswith("--serve=") else (word,)
