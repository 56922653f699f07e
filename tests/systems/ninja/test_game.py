"""The ninja runs, jumps, slides, is killed by mines, and leaves by the exit once it is open."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memfit.systems.ninja.fields import build_fields
from memfit.systems.ninja.level import load, parse
from memfit.systems.ninja.physics import HALF, SLIDE
from memfit.systems.ninja.sizes import ACTIONS, ALL_ENTITIES, TILE
from memfit.systems.ninja.world import ARMED, World, mine_features

NOOP, LEFT, RIGHT, JUMP, JUMP_LEFT, JUMP_RIGHT = range(6)


def world_of(drawing: str) -> World:
    level = parse(drawing, name="test")
    return World(level, build_fields(level), sparse=True)


def test_six_actions() -> None:
    assert ACTIONS == ("noop", "left", "right", "jump", "jump-left", "jump-right")


def test_it_runs_both_ways_and_stops_at_walls() -> None:
    world = world_of("SE...@...\n#########")
    for _ in range(40):
        world.step(RIGHT)
    assert world.ninja.x == 10 * TILE - HALF  # the wall behind the ninth column
    assert world.ninja.wall == 1 and world.ninja.vx == 0
    before = world.ninja.x
    world.step(LEFT)
    assert world.ninja.x < before


def test_it_jumps_two_tiles_high_and_comes_down() -> None:
    world = world_of("...SE\n.....\n.....\n.....\n@....\n#####")
    while not world.ninja.grounded:
        world.step(NOOP)
    ground = world.ninja.y
    highest = ground
    world.step(JUMP)
    for _ in range(20):
        world.step(NOOP)
        highest = min(highest, world.ninja.y)
    assert 2 * TILE < ground - highest < 3 * TILE
    assert world.ninja.y == ground and world.ninja.grounded


def test_it_slides_down_a_wall_that_it_pushes_against_and_jumps_off() -> None:
    drawing = "@" + ".\n." * 10 + "\nSE"
    world = world_of(drawing)
    for _ in range(5):
        world.step(LEFT)
    assert world.ninja.wall == -1 and world.ninja.vy == SLIDE
    world.step(JUMP)
    assert world.ninja.vy < 0 and world.ninja.vx > 0


def test_the_exit_opens_with_the_switch() -> None:
    world = world_of("..E.@..S\n########")
    total = 0.0
    while world.ninja.x > 3 * TILE + TILE // 2:  # over the closed exit
        total += world.step(LEFT)
    assert (world.won, world.switched) == (False, False)
    while not world.switched:
        total += world.step(RIGHT)
    while not world.over:
        total += world.step(LEFT)
    assert world.won and not world.dead
    assert total == pytest.approx(3.0 + 0.5 + 1.0 - 0.005 * world.steps)


def test_an_armed_mine_kills() -> None:
    world = world_of("@.*" + "." * 35 + "SE\n" + "#" * 40)
    rewards = []
    while not world.over:
        rewards.append(world.step(RIGHT))
    assert world.dead and not world.won and rewards[-1] < -0.3


def test_a_toggle_mine_arms_once_it_is_left() -> None:
    world = world_of("@.o...SE\n########")
    while world.ninja.x < 5 * TILE:
        world.step(RIGHT)
    assert (world.over, world.mines[0, 3]) == (False, ARMED)
    while not world.over:
        world.step(LEFT)
    assert world.dead
    world.reset()
    assert world.mines[0, 3] != ARMED and not world.over


@given(
    seed=st.integers(0, 2**16),
    name=st.sampled_from(["first-steps", "climb", "minefield", "generated:1"]),
)
def test_it_is_never_in_a_wall_or_off_the_fields(seed: int, name: str) -> None:
    level = load(name)
    world = World(level, build_fields(level), sparse=True)
    draw = np.random.default_rng(seed)
    for _ in range(60):
        world.step(int(draw.integers(6)))
        for x in (world.ninja.x - HALF + 0.01, world.ninja.x + HALF - 0.01):
            for y in (world.ninja.y - HALF + 0.01, world.ninja.y + HALF - 0.01):
                assert not level.solid[int(x // TILE), int(y // TILE)]
        assert 0 <= world.left < 1000
        if world.over:
            world.reset()


def test_mines_are_told_nearest_first() -> None:
    world = world_of("*..@.o..SE\n##########")
    told = np.zeros(ALL_ENTITIES, np.float32)
    mine_features(world, told)
    near, far = told[1:7], told[7:13]
    assert told[0] == np.float32(2 / 128) and not told[13:].any()
    assert near[0] == pytest.approx(2 * TILE / 500) and far[0] == pytest.approx(-3 * TILE / 500)
    assert list(near[2:]) == pytest.approx([0, 2 * TILE / 500, 1, 0])
    assert list(far[2:]) == pytest.approx([1, 3 * TILE / 500, 0, 0])
    few = np.zeros(4, np.float32)
    mine_features(world, few)
    assert (few == told[:4]).all()
