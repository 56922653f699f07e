"""Bytes of the windowed buffers, as expressions over a run's knobs.

A window part has `length` rows of `row_bytes`, of which `new` are new at each step; numbers that
are no window are a part of one row. What is stored of each part is its rows, once, and where
each window begins.
"""

from __future__ import annotations

from memfit.model import Size, const, knob, maximum, minimum
from memfit.model.size import ceil_div

# As in the buffers themselves; a truth test holds both together.
CHUNK_BYTES = 4 << 20
START_BYTES = 4
SLOTS = 4  # of a light vector env's observations


def window_rollout(*, length: int, row_bytes: int, new: int = 1) -> Size:
    """One part of a rollout's observations, while no episode ends within it.

    Each env begins with a complete window; the other steps bring their new rows.
    """
    steps, envs = knob("n_steps"), knob("n_envs")
    rows = (steps - 1) * new + length
    return envs * rows * row_bytes + steps * envs * START_BYTES


def window_replay(
    *,
    length: int,
    row_bytes: int,
    new: int = 1,
    n_envs: int = 1,
    episodes: Size | None = None,
) -> Size:
    """One part of a replay's observations and next observations, until its ring is full.

    With one env, `episodes` counts those that ended and were followed by another: each begins
    with a complete window. With more envs no episode may end: their rows lie in extents that
    each begin with a complete window.
    """
    capacity = maximum(knob("buffer_size") // n_envs, 1)
    filled = minimum(capacity, knob("total_timesteps") // n_envs)
    extent = window_extent(length=length, row_bytes=row_bytes, new=new, n_envs=n_envs)
    if n_envs == 1:
        ended = knob("episodes") if episodes is None else episodes
        rows = filled * new + length + ended * length
        extents = ceil_div(rows, extent)
    else:
        extents = ceil_div(filled + 1, (extent - length) // new + 1) * n_envs
    return extents * extent * row_bytes + capacity * (2 * n_envs * START_BYTES)


def window_extent(*, length: int, row_bytes: int, new: int = 1, n_envs: int = 1) -> Size:
    """Rows that an env of a replay gets at a time."""
    capacity = maximum(knob("buffer_size") // n_envs, 1)
    share = (capacity * new + length) // 16
    return maximum(const(8 * length), minimum(share, CHUNK_BYTES // row_bytes))
