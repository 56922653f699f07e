"""Bytes of arrays."""

from __future__ import annotations

from memfit.model import ArraySpec, RunSpec, Size, const, knob, maximum, minimum, size
from memfit.model.size import ceil_div


def rows(spec: RunSpec) -> Size:
    """The rows of a run's buffer: steps of a rollout, or a replay's capacity a env."""
    if spec.on_policy:
        return knob("n_steps")
    return maximum(knob("buffer_size") // knob("n_envs"), 1)


def filled_rows(spec: RunSpec) -> Size:
    """The rows that are written when the run ends: a replay larger than the run stays empty."""
    if spec.on_policy:
        return rows(spec)
    return minimum(rows(spec), ceil_div(knob("total_timesteps"), knob("n_envs")))


def row_bytes(array: ArraySpec) -> Size:
    """Bytes of one row of an array."""
    total = const(array.itemsize)
    for n in array.shape[1:]:
        total = total * size(n)
    return total


def full_bytes(spec: RunSpec) -> list[tuple[str, int]]:
    """Every buffer array at its full size."""
    count = rows(spec)
    return [(a.name, (count * row_bytes(a)).evaluate(spec.knobs)) for a in spec.arrays]
