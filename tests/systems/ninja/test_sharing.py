"""Environments share what does not change, in one process and between several."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from memfit.errors import UsageError
from memfit.systems.ninja import shared
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
from memfit.systems.ninja.settings import EnvironmentConfig, Memory
from memfit.systems.ninja.sizes import CELLS, MINES

FITTED, DESCRIBED = EnvironmentConfig.for_training, EnvironmentConfig.as_described


def test_two_environments_have_one_level_in_memory() -> None:
    one, other = NinjaEnv(FITTED(levels=("climb",))), NinjaEnv(FITTED(levels=("climb",)))
    for env in (one, other):
        env.reset(seed=0)
    assert one.world is not other.world
    assert one.world.fields is other.world.fields
    assert one.world.solid is other.world.solid
    first, second = one._stage.pictures, other._stage.pictures
    assert np.shares_memory(first.background, second.background)  # type: ignore[arg-type]
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


def test_graphs_are_built_when_they_are_asked_for() -> None:
    shared.forget()
    env = NinjaEnv(FITTED(levels=("climb",)))
    env.reset(seed=0)
    env.step(2)
    assert env._stage._graph is None and not shared._graphs
    env.graph()
    assert len(shared._graphs) == 1
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


def test_arrays_in_a_folder_are_mapped_and_the_same(tmp_path: Path) -> None:
    level = load("climb")
    shared.forget()
    plain, graph = shared.shared_data(level), shared.shared_graph(level)
    mapped = shared.shared_data(level, str(tmp_path))
    graph_mapped = shared.shared_graph(level, str(tmp_path))
    assert isinstance(mapped.background, np.memmap)
    assert np.array_equal(plain.background, mapped.background)
    assert np.array_equal(plain.fields.to_exit, mapped.fields.to_exit)
    assert all(np.array_equal(graph[name], graph_mapped[name]) for name in GRAPH)
    assert not any(path.suffix == ".part" for path in tmp_path.iterdir())


def test_another_process_maps_what_the_first_has_written(tmp_path: Path) -> None:
    level = load("climb")
    shared.shared_data(level, str(tmp_path))
    file = tmp_path / f"{level.digest}-background.npy"
    # Were the file ignored, the other process would not see this pixel.
    array = np.load(file, mmap_mode="r+")
    array[0, 0] = 201
    array.flush()
    code = (
        "from memfit.systems.ninja.env import NinjaEnv\n"
        "from memfit.systems.ninja.settings import EnvironmentConfig\n"
        f"config = EnvironmentConfig(levels=('climb',), shared_folder={str(tmp_path)!r})\n"
        "env = NinjaEnv(config)\n"
        "print(env._stage.pictures.background[0, 0])"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "201\n" and done.stderr == ""


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    shared.forget()
    with pytest.raises(UsageError, match="give a folder that exists"):
        shared.shared_data(load("climb"), str(tmp_path / "missing"))
