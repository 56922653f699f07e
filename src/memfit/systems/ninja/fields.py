"""How far each cell of a level is from its switch and from its exit, and what can be reached."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from memfit.systems.ninja.level import FAR, Level, centre, flood
from memfit.systems.ninja.sizes import CELL, CELLS, REACHABILITY, TILE, Array


@dataclass(frozen=True, kw_only=True)
class Fields:
    """Distances in cells by column and row, and the way between switch and exit."""

    to_switch: Array
    to_exit: Array

    @cached_property
    def between(self) -> int:
        """From the switch to the exit."""
        return int(self.to_exit[self.to_switch == 0][0])


def cell_of(x: float, y: float) -> tuple[int, int]:
    """The cell that a pixel of the whole picture lies in."""
    return int((x - TILE) // CELL), int((y - TILE) // CELL)


def open_cells(level: Level) -> Array:
    """Which cells are not in a wall."""
    inside = ~level.solid[1:-1, 1:-1]
    return inside.repeat(TILE // CELL, 0).repeat(TILE // CELL, 1)


def roomy_cells(level: Level) -> Array:
    """Which cells the middle of the ninja can be in: no wall within a cell of them."""
    around = np.lib.stride_tricks.sliding_window_view(np.pad(open_cells(level), 1), (3, 3))
    return np.asarray(around.all(axis=(2, 3)))


def build_fields(level: Level) -> Fields:
    """The fields of a level."""
    free = roomy_cells(level)
    return Fields(
        to_switch=flood(free, cell_of(*centre(level.switch))),
        to_exit=flood(free, cell_of(*centre(level.exit))),
    )


def reachability(fields: Fields, x: float, y: float, *, switched: bool, out: Array) -> None:
    """Write what can be reached from here, how far it is, and which way to go."""
    column, row = cell_of(x, y)
    goal = fields.to_exit if switched else fields.to_switch
    size = CELLS[0] + CELLS[1]
    here = int(goal[column, row])
    left, right, up, down = (
        int(goal[min(max(c, 0), CELLS[0] - 1), min(max(r, 0), CELLS[1] - 1)])
        for c, r in ((column - 1, row), (column + 1, row), (column, row - 1), (column, row + 1))
    )
    out[0] = fields.to_switch[column, row] < FAR
    out[1] = fields.to_exit[column, row] < FAR
    out[2] = min(int(fields.to_switch[column, row]) / size, 2.0)
    out[3] = min(int(fields.to_exit[column, row]) / size, 2.0)
    out[4] = min(here / size, 2.0)
    out[5] = left < here
    out[6] = right < here
    out[7] = up < here
    out[8] = down < here
    out[9] = here < FAR
    assert len(out) == REACHABILITY
