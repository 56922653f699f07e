"""Where a result goes and in which form: the options that every command shares."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from memfit.errors import UsageError
from memfit.units import parse_bytes

if TYPE_CHECKING:
    from memfit.render import Block


class Format(StrEnum):
    """The forms of a result."""

    TERMINAL = "terminal"
    MD = "md"
    JSON = "json"
    HTML = "html"


FormatOption = Annotated[
    Format, typer.Option("--format", help="How to show the result.", show_default=True)
]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "-o", "--output", metavar="FILE", help="Write the result there instead of printing it."
    ),
]
NetworkOption = Annotated[
    bool,
    typer.Option("--network", help="Let a target use the network."),
]
EngineOption = Annotated[
    str,
    typer.Option(metavar="ENGINE", help="Make the runs on the nodes of a cluster: ray."),
]
QuietOption = Annotated[bool, typer.Option("-q", "--quiet", help="No progress on standard error.")]


def parse_limit(text: str | None) -> int | None:
    """`--limit` in bytes."""
    amount = None if text is None else parse_bytes(text)
    if amount == 0:
        raise UsageError("--limit 0 leaves no room for anything: give a size such as 16GiB")
    return amount


def parse_seconds(text: str) -> float:
    """A stretch of time such as `10s`, `500ms`, `2m` or plain seconds."""
    units = {"": 1.0, "s": 1.0, "ms": 0.001, "m": 60.0, "min": 60.0, "h": 3600.0}
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", text)
    if match is None or match.group(2) not in units or not float(match.group(1)):
        raise UsageError(f"{text!r} is no stretch of time: write one such as 10s or 2m")
    return float(match.group(1)) * units[match.group(2)]


def check_timeout(seconds: float) -> None:
    """Refuse a `--timeout` in which nothing can be done."""
    if not seconds > 0:
        raise UsageError(f"--timeout {seconds:g} leaves no time: give seconds above zero")


def check_output(output: Path | None, form: Format = Format.TERMINAL) -> None:
    """Refuse a place or a form that cannot be written, before the work and not after it."""
    if form is Format.HTML:
        from memfit.render import check_pictures

        check_pictures()
    if output is None:
        return
    if not os.path.isdir(output.absolute().parent):  # noqa: PTH112  # a name may be too long
        raise UsageError(
            f"cannot write {output}: its directory does not exist. Create it, or choose another"
        )
    if os.path.isdir(output):  # noqa: PTH112  # a name may be too long
        raise UsageError(f"cannot write {output}: it is a directory. Name a file in it")


def emit(
    form: Format,
    output: Path | None,
    blocks: Callable[..., list[Block]],
    data: Callable[..., dict[str, Any]],
    *result: Any,
) -> None:
    """Write a result, as blocks or as JSON, to a file or to standard output."""
    from memfit import render

    with _written(output) as to:
        if form is Format.JSON:
            to.write(json.dumps(data(*result), indent=2) + "\n")
        elif form is Format.MD:
            to.write(render.to_markdown(blocks(*result)))
        elif form is Format.HTML:
            to.write(render.to_html(blocks(*result), data(*result)))
        else:
            render.to_terminal(blocks(*result), to)


def emit_text(output: Path | None, text: str) -> None:
    """Write a result in a form that only one command has."""
    with _written(output) as to:
        to.write(text)


@contextmanager
def _written(output: Path | None) -> Iterator[TextIO]:
    """Where a result is written: a file, or standard output."""
    try:
        with (
            nullcontext(sys.stdout) if output is None else output.open("w", encoding="utf-8") as to
        ):
            yield to
            to.flush()
    except BrokenPipeError:  # whoever read has read enough
        raise
    except OSError as error:
        where = output or "the result"
        raise UsageError(f"cannot write {where}: {error.strerror}. Choose another file") from error
