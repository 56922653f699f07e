"""The sizes of the ninja system's world, pictures and arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Observation = dict[str, Array]

TILE = 24  # pixels
COLUMNS, ROWS = 42, 23  # tiles inside the border
WIDTH, HEIGHT = (COLUMNS + 2) * TILE, (ROWS + 2) * TILE  # pixels of the whole picture: 1056 x 600
FRAME = 84  # pixels of the square around the player
SHRINK = 6  # pixels of the picture in one of the overview
VIEW = (WIDTH // SHRINK, HEIGHT // SHRINK)  # 176 x 100

CELL = 6  # pixels of a cell of the graph and of the distance fields
CELLS = (COLUMNS * TILE // CELL, ROWS * TILE // CELL)  # 168 x 92
ENTITY_NODES = 400
NODES = CELLS[0] * CELLS[1] + ENTITY_NODES  # 15,856
NEIGHBOURS = 8
EDGES = NODES * NEIGHBOURS  # 126,848
NODE_FEATURES = 55
EDGE_FEATURES = 6

MINES = 128
MINE_ATTRIBUTES = 6
ALL_ENTITIES = 1 + MINES * MINE_ATTRIBUTES  # 769
NEAREST_ENTITIES = 4  # how many mines there are, and where and how the nearest one is
GAME_STATE = 30
REACHABILITY = 10

ACTIONS = ("noop", "left", "right", "jump", "jump-left", "jump-right")
TICKS = 4  # of physics in one step
