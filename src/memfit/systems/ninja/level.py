"""Levels: drawn as text and read with one clear message if something is wrong, or generated."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from random import Random

import numpy as np

from memfit.errors import UsageError
from memfit.systems.ninja.sizes import COLUMNS, MINES, ROWS, TILE, Array

WALL, OPEN, START, SWITCH, EXIT, MINE, TOGGLE = "#", ".", "@", "S", "E", "*", "o"
LEGEND = "# wall, . open, @ start, S switch, E exit, * mine, o mine that arms once it is touched"
_TEXT = ".txt"
FAR = 32_000  # of a cell to which there is no way
STOREY = 4  # rows of a generated storey: its floor, and three rows of air


@dataclass(frozen=True, kw_only=True)
class Mine:
    """A mine: armed from the start, or once it has been touched and left."""

    tile: tuple[int, int]
    toggles: bool


@dataclass(frozen=True, kw_only=True)
class Level:
    """A level of 42 x 23 tiles; a smaller drawing lies in its upper left corner, in rock."""

    name: str
    rows: tuple[str, ...]
    start: tuple[int, int]  # column and row of a tile
    switch: tuple[int, int]
    exit: tuple[int, int]
    mines: tuple[Mine, ...]

    @cached_property
    def solid(self) -> Array:
        """Which tiles are walls, the border included: 44 x 25, by column and row."""
        walls = np.ones((COLUMNS + 2, ROWS + 2), np.bool_)
        walls[1:-1, 1:-1] = np.array([list(row) for row in self.rows]).T == WALL
        walls.flags.writeable = False
        return walls

    @property
    def drawing(self) -> str:
        """The level as text, which `parse` reads."""
        return "\n".join(self.rows)


def centre(tile: tuple[int, int]) -> tuple[int, int]:
    """The middle of a tile in pixels of the whole picture."""
    return tile[0] * TILE + TILE + TILE // 2, tile[1] * TILE + TILE + TILE // 2


def shipped() -> tuple[str, ...]:
    """The names of the levels that come with the system."""
    folder = resources.files("memfit.systems.ninja") / "levels"
    names = (one.name for one in folder.iterdir())
    return tuple(sorted(name.removesuffix(_TEXT) for name in names if name.endswith(_TEXT)))


def load(name: str) -> Level:
    """A shipped level by its name, `generated:SEED`, or a text file of one's own by its path."""
    if name in shipped():
        file = resources.files("memfit.systems.ninja") / "levels" / f"{name}{_TEXT}"
        return parse(file.read_text(encoding="utf-8"), name=name)
    if name.startswith("generated:"):
        seed = name.removeprefix("generated:")
        if not (seed.isascii() and seed.isdigit()):
            raise UsageError(f"{name!r} has no seed: give a level such as generated:7")
        return generate(int(seed))
    try:
        text = Path(name).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(
            f"there is no level {name!r}: give a text file, generated:SEED, or one of "
            f"{', '.join(shipped())}"
        ) from None
    except UnicodeDecodeError:
        raise UsageError(f"level {name} is no text: draw it with {LEGEND}") from None
    except OSError as error:
        raise UsageError(
            f"level {name} cannot be read ({error.strerror}): give a text file"
        ) from None
    return parse(text, name=name)


@cache
def shared_level(name: str) -> Level:
    """A level, read once in a process."""
    return load(name)


def parse(text: str, *, name: str) -> Level:
    """Read a drawing; lines that begin with `;` say something about it."""
    rows = [line.rstrip() for line in text.splitlines() if not line.startswith(";")]
    while rows and not rows[-1]:
        rows.pop()
    if not rows:
        raise UsageError(f"level {name} is empty: draw it with {LEGEND}")
    if len(rows) > ROWS or max(map(len, rows)) > COLUMNS:
        raise UsageError(
            f"level {name} has {max(map(len, rows))} x {len(rows)} tiles: "
            f"draw at most {COLUMNS} x {ROWS}"
        )
    found: dict[str, list[tuple[int, int]]] = {}
    for row, line in enumerate(rows):
        for column, sign in enumerate(line):
            if sign not in (WALL, OPEN, START, SWITCH, EXIT, MINE, TOGGLE):
                raise UsageError(
                    f"level {name}, line {row + 1} of the drawing, column {column + 1}: "
                    f"{sign!r} means nothing. Use {LEGEND}"
                )
            found.setdefault(sign, []).append((column, row))
    for sign, words in ((START, "start"), (SWITCH, "switch"), (EXIT, "exit")):
        places = found.get(sign, [])
        if not places:
            raise UsageError(f"level {name} has no {words}: draw one {sign}")
        if len(places) > 1:
            raise UsageError(f"level {name} has {len(places)} of {sign} ({words}): draw one")
    mines = [Mine(tile=tile, toggles=False) for tile in found.get(MINE, [])]
    mines += [Mine(tile=tile, toggles=True) for tile in found.get(TOGGLE, [])]
    if len(mines) > MINES:
        raise UsageError(f"level {name} has {len(mines)} mines: draw at most {MINES}")
    level = Level(
        name=name,
        rows=tuple(line.ljust(COLUMNS, WALL) for line in rows)
        + (WALL * COLUMNS,) * (ROWS - len(rows)),
        start=found[START][0],
        switch=found[SWITCH][0],
        exit=found[EXIT][0],
        mines=tuple(mines),
    )
    away = flood(~level.solid[1:-1, 1:-1], level.start)
    for tile, words in ((level.switch, "switch"), (level.exit, "exit")):
        if away[tile] == FAR:
            raise UsageError(f"level {name}: walls part the {words} from the start. Open a way")
    return level


def flood(free: Array, start: tuple[int, int]) -> Array:
    """The distance of every free cell from one, side by side, in waves."""
    distance = np.full(free.shape, FAR, np.int16)
    distance[start] = 0
    wave = np.zeros((free.shape[0] + 2, free.shape[1] + 2), np.bool_)
    wave[start[0] + 1, start[1] + 1] = True
    steps = 0
    while True:
        steps += 1
        near = wave[:-2, 1:-1] | wave[2:, 1:-1] | wave[1:-1, :-2] | wave[1:-1, 2:]
        near &= free & (distance == FAR)
        if not near.any():
            return distance
        distance[near] = steps
        wave[1:-1, 1:-1] = near


def generate(seed: int, *, mines: int = 16) -> Level:
    """A level of five storeys with gaps and steps, sown with mines; one seed is one level."""
    mines = min(max(mines, 0), MINES)
    draw = Random(seed)
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
