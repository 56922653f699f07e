"""The thirty numbers of a game's state, all from -1 to 1."""

from __future__ import annotations

from memfit.systems.ninja.physics import FALL, HALF, RUN
from memfit.systems.ninja.sizes import ACTIONS, GAME_STATE, HEIGHT, TILE, WIDTH, Array
from memfit.systems.ninja.world import World


def game_state(world: World, max_steps: int, out: Array) -> None:
    """Write the ninja's place and motion, the goals, the time, walls around, the last action."""
    ninja = world.ninja
    goal = world.exit if world.switched else world.switch
    out[0] = ninja.x / WIDTH * 2 - 1
    out[1] = ninja.y / HEIGHT * 2 - 1
    out[2] = ninja.vx / RUN
    out[3] = ninja.vy / FALL
    out[4] = ninja.grounded
    out[5] = ninja.wall
    out[6] = min(ninja.airborne / 60, 1.0)
    out[7] = world.switched
    out[8] = world.left / max(world.whole, world.left, 1)
    out[9] = world.steps / max_steps
    for at, place in ((10, world.switch), (12, world.exit), (14, goal)):
        out[at] = (place[0] - ninja.x) / WIDTH
        out[at + 1] = (place[1] - ninja.y) / HEIGHT
    column, row = int(ninja.x // TILE), int(ninja.y // TILE)
    solid = world.solid
    at = 16
    for across in (-1, 0, 1):
        for down in (-1, 0, 1):
            if across or down:
                out[at] = solid[column + across, row + down]
                at += 1
    out[24] = world.action / (len(ACTIONS) - 1)
    out[25] = (ninja.x % TILE - TILE / 2) / (TILE / 2)
    out[26] = (ninja.y % TILE - TILE / 2) / (TILE / 2)
    out[27] = _drop(world, column, row)
    out[28] = world.count > 0
    out[29] = HALF / TILE
    assert at == 24 and len(out) == GAME_STATE


def _drop(world: World, column: int, row: int) -> float:
    """How many tiles of air are below, of up to eight."""
    for deep in range(8):
        if world.solid[column, row + 1 + deep]:
            return deep / 8
    return 1.0
