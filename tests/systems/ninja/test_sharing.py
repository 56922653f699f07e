"""Environments share what does not change, in one process and between several."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import numpy as np
import pytest

from memfit.systems.ninja.env import NinjaEnv, observation_space
from memfit.systems.ninja.graph import (
    AIR,
    ENTITY,
    EXIT,
    FLOOR,
    GRAPH,
    MINE,
    SWITCH,
    DescribedGraph,
    build_graph,
)
from memfit.systems.ninja.level import load, parse
from memfit.systems.ninja.level_data import build_data, shared_data, shared_graph
from memfit.systems.ninja.settings import EnvironmentConfig, Memory
from memfit.systems.ninja.sizes import CELLS, MINES, Array

FITTED, DESCRIBED = EnvironmentConfig.for_training, EnvironmentConfig.as_described


def test_two_environments_have_one_level_in_memory() -> None:
    one, other = NinjaEnv(FITTED(levels=("climb",))), NinjaEnv(FITTED(levels=("climb",)))
    for env in (one, other):
        env.reset(seed=0)
    assert one.world is not other.world
    assert np.shares_memory(one.world.fields.to_exit, other.world.fields.to_exit)
    assert one.world.solid is other.world.solid
    first, second = one._stage.pictures, other._stage.pictures
    assert np.shares_memory(first.background, second.background)
    assert one.observation_space is other.observation_space
    assert one.action_space is not other.action_space
    for name in GRAPH:
        assert np.shares_memory(one.graph()[name], other.graph()[name])
        assert not one.graph()[name].flags.writeable
    assert not one.world.fields.to_exit.flags.writeable


def test_as_described_each_has_its_own() -> None:
    one, other = (NinjaEnv(DESCRIBED(levels=("climb",))) for _ in range(2))
    for env in (one, other):
        env.reset(seed=0)
    assert not np.shares_memory(one.world.fields.to_exit, other.world.fields.to_exit)
    assert one.observation_space is not other.observation_space
    for name in GRAPH:
        assert not np.shares_memory(one.graph()[name], other.graph()[name])


def has_graph(env: NinjaEnv) -> bool:
    return env._stage._graph is not None


def test_graphs_are_built_when_they_are_asked_for() -> None:
    env = NinjaEnv(FITTED(levels=("climb",)))
    env.reset(seed=0)
    env.step(2)
    assert not has_graph(env)
    env.graph()
    assert has_graph(env)
    assert NinjaEnv(DESCRIBED(levels=("climb",)))._stage._graph is not None


def test_mines_take_the_room_of_those_that_are_there() -> None:
    level = ("climb",)
    sparse = NinjaEnv(FITTED(levels=level)).world.mines
    dense = NinjaEnv(DESCRIBED(levels=level, memory=Memory.only("lazy_graphs"))).world.mines
    assert dense.shape == (MINES, 6) and sparse.shape == (3, 6)
    assert (dense[:3] == sparse).all()


def test_a_slice_keeps_all_that_it_is_cut_from() -> None:
    """The assessment's own advice, `entity_states_full[:4]`, saves nothing by itself."""
    described, _ = NinjaEnv(DESCRIBED(memory=Memory.only("lazy_graphs"))).reset(seed=0)
    base = described["entity_states"].base
    assert base is not None and base.nbytes == 769 * 4
    fitted, _ = NinjaEnv(FITTED()).reset(seed=0)
    assert fitted["entity_states"].base is None


def test_a_space_is_larger_than_its_observation() -> None:
    space = observation_space(DESCRIBED(graphs="arrays"))
    held = sum(
        array.nbytes
        for box in space.spaces.values()
        for array in (box.low, box.high, box.bounded_below, box.bounded_above)  # type: ignore[attr-defined]
    )
    assert held > 2.4 * 8_714_040


def test_a_graph_has_its_nodes_and_edges() -> None:
    level = parse("@.*\nSE#", name="small")
    graph = build_graph(level)
    assert {name: (array.shape, array.dtype.type) for name, array in graph.items()} == GRAPH
    assert sum(array.nbytes for array in graph.values()) == 8_714_040 - 24_952
    types = graph["graph_node_types"]
    grid = CELLS[0] * CELLS[1]
    assert set(types[:grid]) == {0, AIR, FLOOR}
    assert (types[:grid] != 0).sum() == 5 * 16
    assert list(types[grid : grid + 4]) == [SWITCH, EXIT, MINE, 0]
    assert graph["graph_node_mask"].sum() == 5 * 16 + 3
    count = int(graph["graph_edge_mask"].sum())
    ends = graph["graph_edge_index"][:, :count]
    assert (types[ends] != 0).all()
    pairs = set(map(tuple, ends.T.tolist()))
    assert len(pairs) == count and all((b, a) in pairs for a, b in pairs)
    assert (graph["graph_edge_types"][:count] == ENTITY).sum() == 2 * 3
    assert not graph["graph_edge_features"][count:].any()
    own = DescribedGraph(level)
    assert all(np.array_equal(own.arrays[name], graph[name]) for name in GRAPH)
    assert sum(map(len, own.neighbours.values())) == count


def test_shared_arrays_are_those_that_are_built() -> None:
    level = load("minefield")
    built, found = build_data(level), shared_data(level)
    assert np.array_equal(built.background, found.background)
    assert np.array_equal(built.overview, found.overview)
    assert np.array_equal(built.fields.to_switch, found.fields.to_switch)
    assert np.array_equal(built.fields.to_exit, found.fields.to_exit)
    graph, same = build_graph(level), shared_graph(level)
    assert all(np.array_equal(graph[name], same[name]) for name in GRAPH)


def test_levels_of_one_name_are_told_apart_by_their_drawing() -> None:
    one, other = parse("@.SE", name="mine"), parse("@S.E", name="mine")
    first, second = shared_data(one).fields, shared_data(other).fields
    assert not np.array_equal(first.to_switch, second.to_switch)


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_a_worker_finds_the_arrays_of_this_process(method: str) -> None:
    held = shared_data(load("climb")), shared_graph(load("climb"))
    with multiprocessing.get_context(method).Pool(1) as pool:
        assert pool.apply(files_of_climb) == files_of_climb()
    assert len(set(files_of_climb())) == 2
    del held  # until here the arrays are there


def files_of_climb() -> list[str]:
    """The kernel's numbers of the shared memory that the arrays of a level lie in here."""
    data, graph = shared_data(load("climb")), shared_graph(load("climb"))
    return [file_of(data.background), file_of(graph["graph_edge_index"])]


def file_of(array: Array) -> str:
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, _, _, _, inode, *name = line.split(maxsplit=5)
        first, after = (int(end, 16) for end in span.split("-"))
        if first <= array.ctypes.data < after:
            assert name and name[0].startswith("/memfd:memfit-")
            return inode
    raise AssertionError("it lies nowhere")
