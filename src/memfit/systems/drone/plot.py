"""A picture of a training: returns over iterations, and paths as flown from above."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memfit.errors import UsageError


def check_plot(file: Path) -> None:
    """Refuse a picture that could not be written, before hours of training."""
    from matplotlib.backend_bases import FigureCanvasBase

    kinds = sorted(FigureCanvasBase.get_supported_filetypes())
    if file.suffix.removeprefix(".").lower() not in kinds:
        raise UsageError(
            f"--plot {file} has no ending of a picture: give one of {', '.join(kinds)}"
        )
    if not file.absolute().parent.is_dir():
        raise UsageError(f"--plot {file}: there is no folder {file.parent}: make it first")


def draw(file: Path, returns: Sequence[float], paths: Any) -> None:
    """Write the picture."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(range(1, len(returns) + 1), returns, marker="o", markersize=3)
    left.set(xlabel="iteration", ylabel="mean return (m nearer to the target)", title="Returns")
    left.axhline(0, color="grey", linewidth=0.5)
    for path in paths.numpy():
        right.plot(path[:, 0], path[:, 1], linewidth=1)
        right.plot(path[-1, 0], path[-1, 1], "o", markersize=3, color="black")
    right.set(xlabel="x (m)", ylabel="y (m)", title="Paths of the last rollout, from above")
    right.set_aspect("equal", adjustable="datalim")
    figure.savefig(file, dpi=120)
