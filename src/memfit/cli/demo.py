"""`memfit demo`: predicted beside measured, on a real training."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memfit.cli.messages import progress
from memfit.cli.output import Format, FormatOption, OutputOption, QuietOption, check_output, emit
from memfit.errors import UsageError

if TYPE_CHECKING:
    from memfit.model import SystemDocument

_DOCUMENTS = (Format.MD, Format.HTML)


def demo(
    system: Annotated[
        str | None,
        typer.Argument(
            metavar="[SYSTEM]",
            help="A reference system: drone, fighter, ninja or trader. Without one, a small "
            "stable-baselines3 training.",
            show_default=False,
        ),
    ] = None,
    form: FormatOption = Format.TERMINAL,
    output: OutputOption = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", metavar="FILE", help="Also write a page with pictures there (HTML)."
        ),
    ] = None,
    quiet: QuietOption = False,
) -> None:
    """Plan a real training, run it, and compare.

    Without a system: plans the drone as described, plans and records a small training, shows
    predicted beside measured, row by row, explains it, tries its fixes, ends with before and after.
    Of a system, --format md or a folder after -o gives the whole document: configuration, memory by
    component, benchmark, capacity, issues, logic checks, recommendations, monitoring targets.

    \b
    Examples:
      memfit demo --report demo.html
      memfit demo drone
      memfit demo drone -o reports/
      memfit demo --format md -o demo.md
    """
    folder = output if system is not None and output is not None and _is_folder(output) else None
    if folder is None:
        check_output(output, form)
    if report is not None:
        if system is not None:
            raise UsageError("--report is of the demo without a system: give -o FOLDER instead")
        check_output(report, Format.HTML)

    from memfit import render
    from memfit.api import demo as api

    tell = progress(quiet=quiet)
    if system is None:
        shown = api.demo(progress=tell)
        emit(form, output, render.demo_blocks, render.demo_json, shown)
        if report is not None:
            emit(Format.HTML, report, render.demo_blocks, render.demo_json, shown)
            spoils = output is None and form is not Format.TERMINAL
            typer.echo(f"The report, with pictures: {report}", err=spoils)
    elif folder is not None:
        _write_documents(system, folder, tell)
    elif form in _DOCUMENTS:
        _write_document(form, output, _document(system, tell))
    else:
        runs = api.demo_system(system, progress=tell)
        emit(form, output, render.system_demo_blocks, render.system_demo_json, runs)


def _is_folder(output: Path) -> bool:
    """Whether a place is a folder, there or to be made: a file's name has an ending."""
    return output.is_dir() or not output.suffix


def _document(system: str, tell: Callable[[str], None] | None) -> SystemDocument:
    from memfit.api.system_document import system_document

    return system_document(system, progress=tell)


def _write_document(form: Format, output: Path | None, document: SystemDocument) -> None:
    from memfit import render

    emit(form, output, render.system_document_blocks, render.system_document_json, document)


def _write_documents(system: str, folder: Path, tell: Callable[[str], None] | None) -> None:
    """The document in every form in which one is read, in a folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make {folder}: {error.strerror}. Choose another folder") from None
    document = _document(system, tell)
    for form in _DOCUMENTS:
        place = folder / f"{system}.{form.value}"
        _write_document(form, place, document)
        if tell:
            tell(f"written: {place}")
