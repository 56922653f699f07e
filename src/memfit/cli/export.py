"""`memfit export`: a recording for TensorBoard, tables and Prometheus."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from memfit.cli.output import check_output, emit_text
from memfit.errors import UsageError, visible


class Form(StrEnum):
    """The tools for which a recording is written."""

    TENSORBOARD = "tensorboard"
    CSV = "csv"
    PROMETHEUS = "prometheus"


def export(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A recording of `memfit run`.")],
    to: Annotated[Form, typer.Option("--to", help="For which tool.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="PLACE",
            help="The file to write (else it is printed); for TensorBoard the folder of its logs.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("-f", "--force", help="Replace an event file that is there already.")
    ] = False,
) -> None:
    """Write a recording in the form of another tool.

    tensorboard writes an event file into a folder, which may be the one of the training itself:
    memory then stands beside its rewards, over the same steps where the run told them. csv has a
    row for each reading of the run and of its processes. prometheus is OpenMetrics with the times
    of the readings, for `promtool tsdb create-blocks-from openmetrics`.

    \\b
    Examples:
      memfit export night.db --to tensorboard -o runs/night
      memfit export night.db --to csv -o night.csv
      memfit export night.db --to prometheus -o night.om

    Exit code: 0 well. 2: no recording, or it cannot be written.
    """
    from memfit import render
    from memfit.api import export as api

    if to is Form.TENSORBOARD:
        if output is None:
            raise UsageError(
                "TensorBoard reads a folder: say which with -o, such as -o runs/" + file.stem
            )
        place = api.to_tensorboard(file, output, force=force)
        sys.stderr.write(f"memfit: written: {visible(str(place))}\n")
        return
    check_output(output)
    trace = api.recording(file)
    if to is Form.CSV:
        emit_text(output, render.trace_csv(trace))
    else:
        emit_text(output, render.trace_openmetrics(trace, file.stem))
