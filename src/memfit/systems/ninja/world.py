"""One game: the ninja, the mines, the switch and the exit, what a step earns, and its numbers."""

from __future__ import annotations

import numpy as np

from memfit.systems.ninja.fields import Fields, cell_of
from memfit.systems.ninja.level import Level, centre
from memfit.systems.ninja.physics import FALL, HALF, RUN, Ninja
from memfit.systems.ninja.sizes import (
    ACTIONS,
    GAME_STATE,
    HEIGHT,
    MINE_ATTRIBUTES,
    MINES,
    TICKS,
    TILE,
    WIDTH,
    Array,
)

MINE_REACH = HALF + 5
SWITCH_REACH = HALF + 6
EXIT_REACH = HALF + 9

# What is earned: the whole way, whatever its length, is worth more than its goals, so that most
# of a return comes step by step.
WAY_REWARD, SWITCH_REWARD, EXIT_REWARD, MINE_REWARD, STEP_REWARD = 3.0, 0.5, 1.0, -0.5, -0.005

UNTOUCHED, TOUCHED, ARMED = 0, 1, 2
_BESIDE = [0, 1, 2, 3, 5, 6, 7, 8]  # of the 3 x 3 tiles around the ninja


class World:
    """The state of one game. Mines are kept as they are in the level, or in 128 slots."""

    def __init__(self, level: Level, fields: Fields, *, sparse: bool) -> None:
        self.level = level
        self.fields = fields
        self.solid = level.solid
        self.switch = centre(level.switch)
        self.exit = centre(level.exit)
        self.count = len(level.mines)
        slots = self.count if sparse else MINES
        # Attributes of mines: x, y, whether it toggles, its state, touches, ticks since the last.
        self.mines = np.zeros((slots, MINE_ATTRIBUTES))
        for slot, mine in enumerate(level.mines):
            self.mines[slot, :3] = (*centre(mine.tile), mine.toggles)
        self.reset()

    def reset(self) -> None:
        """Begin again."""
        x, y = centre(self.level.start)
        self.ninja = Ninja(float(x), float(y))
        self.switched = self.won = self.dead = False
        self.steps = 0
        self.action = 0
        mines = self.mines[: self.count]
        mines[:, 3:] = 0
        mines[mines[:, 2] == 0, 3] = ARMED
        self.whole = self._way_left()
        self.left = self.whole

    def step(self, action: int) -> float:
        """Move by one step; the reward."""
        reward = STEP_REWARD
        self.steps += 1
        self.action = action
        for _ in range(TICKS):
            self.ninja.tick(action, self.solid)
            if self._touches_mine():
                self.dead = True
                reward += MINE_REWARD
                break
            if not self.switched and self._near(self.switch, SWITCH_REACH):
                self.switched = True
                reward += SWITCH_REWARD
            if self.switched and self._near(self.exit, EXIT_REACH):
                self.won = True
                reward += EXIT_REWARD
                break
        left = 0 if self.won else self._way_left()
        reward += WAY_REWARD * (self.left - left) / self.whole
        self.left = left
        return reward

    @property
    def over(self) -> bool:
        """Whether the game has ended: won, or lost on a mine."""
        return self.won or self.dead

    def _way_left(self) -> int:
        """Cells to go: to the switch and then to the exit, or to the exit alone."""
        cell = cell_of(self.ninja.x, self.ninja.y)
        if self.switched:
            return int(self.fields.to_exit[cell])
        return int(self.fields.to_switch[cell]) + self.fields.between

    def _near(self, place: tuple[int, int], reach: int) -> bool:
        dx, dy = self.ninja.x - place[0], self.ninja.y - place[1]
        return bool(dx * dx + dy * dy < reach * reach)

    def _touches_mine(self) -> bool:
        """Let the mines see the ninja; whether an armed one is touched."""
        if not self.count:
            return False
        mines = self.mines[: self.count]
        away = (mines[:, 0] - self.ninja.x) ** 2 + (mines[:, 1] - self.ninja.y) ** 2
        near = away < MINE_REACH * MINE_REACH
        state = mines[:, 3]
        hit = bool((near & (state == ARMED)).any())
        state[~near & (state == TOUCHED)] = ARMED
        fresh = near & (state == UNTOUCHED)
        mines[fresh, 4] += 1
        state[fresh] = TOUCHED
        mines[:, 5] = np.where(near, 0, mines[:, 5] + 1)
        return hit


def mine_features(world: World, out: Array) -> None:
    """Write how many mines there are, then of each, nearest first, as many as there is room for.

    Of each mine: where it is from the ninja (x, y), whether it is armed, how far it is, whether
    it is one that toggles, and whether it has been touched.
    """
    out[:] = 0
    if not world.count:
        return
    out[0] = world.count / MINES
    ninja = world.ninja
    x, y, toggles, state, touches, _ = world.mines[: world.count].astype(np.float64).T
    dx, dy = (x - ninja.x) / 500.0, (y - ninja.y) / 500.0
    far = np.hypot(dx, dy)
    order = np.argsort(far, kind="stable")[: -(-(len(out) - 1) // MINE_ATTRIBUTES)]
    told = np.stack((dx, dy, state == ARMED, far, toggles, touches > 0), axis=1)[order]
    flat = told.reshape(-1)[: len(out) - 1]
    out[1 : 1 + len(flat)] = flat


def game_state(world: World, max_steps: int, out: Array) -> None:
    """Write thirty numbers from -1 to 1: place, motion, goals, time, walls around, last action."""
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
    out[16:24] = world.solid[column - 1 : column + 2, row - 1 : row + 2].ravel()[_BESIDE]
    out[24] = world.action / (len(ACTIONS) - 1)
    out[25] = (ninja.x % TILE - TILE / 2) / (TILE / 2)
    out[26] = (ninja.y % TILE - TILE / 2) / (TILE / 2)
    out[27] = _drop(world, column, row)
    out[28] = world.count > 0
    out[29] = HALF / TILE
    assert len(out) == GAME_STATE


def _drop(world: World, column: int, row: int) -> float:
    """How many tiles of air are below, of up to eight."""
    for deep in range(8):
        if world.solid[column, row + 1 + deep]:
            return deep / 8
    return 1.0
