"""The graph of a level: a node for every open cell and entity, edges between neighbours.

Seven arrays of fixed sizes, 8,689,088 bytes together, whatever the level.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from memfit.systems.ninja.fields import cell_of, open_cells
from memfit.systems.ninja.level import Level, centre
from memfit.systems.ninja.sizes import (
    CELL,
    CELLS,
    COLUMNS,
    EDGE_FEATURES,
    EDGES,
    NODE_FEATURES,
    NODES,
    ROWS,
    TILE,
    Array,
    Observation,
)

GRAPH = {
    "graph_node_features": ((NODES, NODE_FEATURES), np.float32),
    "graph_edge_index": ((2, EDGES), np.int32),
    "graph_edge_features": ((EDGES, EDGE_FEATURES), np.float32),
    "graph_node_mask": ((NODES,), np.int32),
    "graph_edge_mask": ((EDGES,), np.int32),
    "graph_node_types": ((NODES,), np.int32),
    "graph_edge_types": ((EDGES,), np.int32),
}
NO_NODE, AIR, FLOOR, SWITCH, EXIT, MINE = range(6)
WALK, RISE, FALL, ENTITY = range(4)
_AROUND = 3  # tiles to each side whose walls a node knows: 7 x 7
_STEPS = [step for step in product((-1, 0, 1), repeat=2) if step != (0, 0)]


def build_graph(level: Level) -> Observation:
    """The arrays of a level's graph, as they are observed."""
    nodes, types = _nodes(level)
    ends, features, kinds = _edges(level, types)
    return _padded(nodes, types, ends, features, kinds)


class DescribedGraph:
    """A graph as described: an environment's own, with its working arrays and a dictionary."""

    def __init__(self, level: Level) -> None:
        self.nodes, self.types = _nodes(level)
        self.ends, self.features, self.kinds = _edges(level, self.types)
        self.neighbours: dict[int, list[tuple[int, float]]] = {}
        lengths = self.features[:, 2].tolist()
        for source, target, far in zip(*self.ends.tolist(), lengths, strict=True):
            self.neighbours.setdefault(source, []).append((target, far))
        self.arrays = _padded(self.nodes, self.types, self.ends, self.features, self.kinds)


def _nodes(level: Level) -> tuple[Array, Array]:
    """Features and types of all nodes: those of cells in the order of cells, then entities."""
    free = open_cells(level)
    walls = np.pad(level.solid[1:-1, 1:-1], _AROUND, constant_values=True).astype(np.float64)
    features = np.zeros((NODES, NODE_FEATURES))
    types = np.zeros(NODES, np.int64)
    columns, rows = np.nonzero(free)
    at = columns * CELLS[1] + rows
    ground = np.pad(~free, ((0, 0), (0, 1)), constant_values=True)[:, 1:]
    types[at] = np.where(ground[columns, rows], FLOOR, AIR)
    features[at, 0] = columns / CELLS[0]
    features[at, 1] = rows / CELLS[1]
    places = np.stack((columns, rows), axis=1) * CELL // TILE
    _fill_around(features, at, places, walls)
    first = CELLS[0] * CELLS[1]
    kinds = [SWITCH, EXIT, *([MINE] * len(level.mines))]
    for slot, (kind, tile) in enumerate(zip(kinds, entities(level), strict=True)):
        types[first + slot] = kind
        features[first + slot, 0] = tile[0] / COLUMNS
        features[first + slot, 1] = tile[1] / ROWS
        _fill_around(features, np.array([first + slot]), np.array([tile]), walls)
    for column, kind in enumerate((FLOOR, SWITCH, EXIT, MINE)):
        features[types == kind, 2 + column] = 1
    return features, types


def entities(level: Level) -> list[tuple[int, int]]:
    """The tiles of switch, exit and mines."""
    return [level.switch, level.exit, *(mine.tile for mine in level.mines)]


def _fill_around(features: Array, at: Array, places: Array, walls: Array) -> None:
    wide = 2 * _AROUND + 1
    for across, down in product(range(wide), repeat=2):  # one by one: no copy of all at once
        seen = walls[places[:, 0] + across, places[:, 1] + down]
        features[at, 6 + across * wide + down] = seen


def _edges(level: Level, types: Array) -> tuple[Array, Array, Array]:
    """Ends, features and kinds of all edges, without those of walls."""
    number = np.arange(CELLS[0] * CELLS[1]).reshape(CELLS)
    is_open = np.pad((types[: number.size] != NO_NODE).reshape(CELLS), 1)
    ends, features, kinds = [], [], []
    for across, down in _STEPS:
        there = is_open[1 + across : 1 + across + CELLS[0], 1 + down : 1 + down + CELLS[1]]
        source = number[is_open[1:-1, 1:-1] & there]
        target = source + across * CELLS[1] + down
        ends.append(np.stack((source, target)))
        known = np.zeros((len(source), EDGE_FEATURES))
        known[:, 0], known[:, 1], known[:, 2] = across, down, np.hypot(across, down)
        known[:, 3] = across != 0 and down != 0
        known[:, 4] = down < 0
        known[:, 5] = types[source] == FLOOR
        features.append(known)
        kinds.append(np.full(len(source), (RISE, WALK, FALL)[down + 1]))
    for slot, tile in enumerate(entities(level)):
        column, row = cell_of(*centre(tile))
        node, cell = number.size + slot, int(number[column, row])
        ends.append(np.array([[node, cell], [cell, node]]))
        features.append(np.zeros((2, EDGE_FEATURES)))
        kinds.append(np.full(2, ENTITY))
    return np.concatenate(ends, axis=1), np.concatenate(features), np.concatenate(kinds)


def _padded(nodes: Array, types: Array, ends: Array, features: Array, kinds: Array) -> Observation:
    """The arrays in their fixed sizes and types."""
    count = ends.shape[1]
    made: Observation = {name: np.zeros(shape, kind) for name, (shape, kind) in GRAPH.items()}
    made["graph_node_features"][:] = nodes
    made["graph_edge_index"][:, :count] = ends
    made["graph_edge_features"][:count] = features
    made["graph_node_mask"][:] = types != NO_NODE
    made["graph_edge_mask"][:count] = 1
    made["graph_node_types"][:] = types
    made["graph_edge_types"][:count] = kinds
    return made
