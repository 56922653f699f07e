"""A small generator of levels: floors with gaps, joined by steps, sown with mines."""

from __future__ import annotations

import random

from memfit.systems.ninja.level import EXIT, MINE, OPEN, START, SWITCH, TOGGLE, WALL, Level, parse
from memfit.systems.ninja.sizes import COLUMNS, MINES, ROWS

STOREY = 4  # rows of a storey: its floor, and three rows of air


def generate(seed: int, *, mines: int = 16) -> Level:
    """A level of five storeys; the same seed is the same level."""
    mines = min(max(mines, 0), MINES)
    draw = random.Random(seed)
    rows = [[OPEN] * COLUMNS for _ in range(ROWS)]
    floors = range(STOREY - 1, ROWS, STOREY)
    for floor in floors:
        rows[floor] = [WALL] * COLUMNS
    rows[ROWS - 1] = [WALL] * COLUMNS
    for floor in floors:
        for _ in range(draw.randint(2, 3)):
            gap = draw.randrange(1, COLUMNS - 5)
            rows[floor][gap : gap + 4] = [OPEN] * 4
            # A step in the middle of the gap's way: from it the next floor can be jumped to.
            rows[floor + 2][gap : gap + 2] = [WALL] * 2
    standing = [
        (row, column)
        for row in range(ROWS - 1)
        for column in range(COLUMNS)
        if rows[row][column] == OPEN and rows[row + 1][column] == WALL
    ]
    draw.shuffle(standing)
    for sign in (START, SWITCH, EXIT):
        row, column = standing.pop()
        rows[row][column] = sign
    air = [
        (row, column)
        for row in range(1, ROWS - 1)
        for column in range(COLUMNS)
        if rows[row][column] == OPEN and rows[row - 1][column] == WALL
    ]
    draw.shuffle(air)
    for row, column in air[:mines]:
        rows[row][column] = draw.choice((MINE, TOGGLE))
    return parse("\n".join("".join(line) for line in rows), name=f"generated:{seed}")
