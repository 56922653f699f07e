"""How the ninja moves: running, jumping, sliding down walls and jumping off them."""

from __future__ import annotations

from dataclasses import dataclass

from memfit.systems.ninja.sizes import ACTIONS, TILE, Array

HALF = 9  # pixels from the middle of the ninja to each side
RUN = 3.3  # pixels a tick
ACCELERATION = 0.3
FRICTION = 0.8
GRAVITY = 0.25
FALL = 6.0
SLIDE = 1.0
JUMP = 5.4
WALL_JUMP = 4.6

_SIDE = (0, -1, 1, 0, -1, 1)  # of each action
_JUMPS = tuple("jump" in action for action in ACTIONS)


@dataclass(slots=True)
class Ninja:
    """Where the ninja is and how it moves; pixels and pixels a tick."""

    x: float
    y: float
    vx: float = 0.0
    vy: float = 0.0
    grounded: bool = False
    wall: int = 0  # a wall at the left (-1) or right (1) side
    airborne: int = 0  # ticks since the ground was left

    def tick(self, action: int, solid: Array) -> None:
        """Move by one tick."""
        side = _SIDE[action]
        if side:
            self.vx = min(max(self.vx + side * ACCELERATION, -RUN), RUN)
        elif self.grounded:
            self.vx *= FRICTION
        self.vy = min(self.vy + GRAVITY, FALL)
        sliding = self.wall != 0 and side == self.wall and not self.grounded
        if sliding:
            self.vy = min(self.vy, SLIDE)
        if _JUMPS[action]:
            if self.grounded:
                self.vy = -JUMP
            elif self.wall and self.vy > 0:
                self.vy, self.vx = -WALL_JUMP, -self.wall * RUN
        self._move_x(solid)
        self._move_y(solid)
        self.airborne = 0 if self.grounded else self.airborne + 1
        self.wall = self._wall_beside(solid)

    def _move_x(self, solid: Array) -> None:
        x = self.x + self.vx
        if self.vx > 0 and _blocked(solid, x + HALF, self.y):
            x, self.vx = float((x + HALF) // TILE * TILE - HALF), 0.0
        elif self.vx < 0 and _blocked(solid, x - HALF, self.y):
            x, self.vx = float((x - HALF) // TILE * TILE + TILE + HALF), 0.0
        self.x = x

    def _move_y(self, solid: Array) -> None:
        y = self.y + self.vy
        self.grounded = False
        if self.vy > 0 and _blocked_row(solid, self.x, y + HALF):
            y, self.vy, self.grounded = float((y + HALF) // TILE * TILE - HALF), 0.0, True
        elif self.vy < 0 and _blocked_row(solid, self.x, y - HALF):
            y, self.vy = float((y - HALF) // TILE * TILE + TILE + HALF), 0.0
        self.y = y

    def _wall_beside(self, solid: Array) -> int:
        if _blocked(solid, self.x - HALF - 1, self.y):
            return -1
        return 1 if _blocked(solid, self.x + HALF + 1, self.y) else 0


# A side that just touches a tile's edge is beside the tile, not in it.
_INSIDE = HALF - 0.001


def _blocked(solid: Array, x: float, y: float) -> bool:
    """Whether a vertical side of the ninja at this x is in a wall."""
    column = int(x // TILE)
    return bool(
        solid[column, int((y - _INSIDE) // TILE)] or solid[column, int((y + _INSIDE) // TILE)]
    )


def _blocked_row(solid: Array, x: float, y: float) -> bool:
    """Whether a horizontal side of the ninja at this y is in a wall."""
    row = int(y // TILE)
    return bool(solid[int((x - _INSIDE) // TILE), row] or solid[int((x + _INSIDE) // TILE), row])
