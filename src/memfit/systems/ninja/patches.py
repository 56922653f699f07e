"""Pictures made to fit: only the pixels that an observation shows, in grey from the start.

The level's background is grey, is drawn once, and belongs to all environments. An environment
itself keeps its overview, in which it renews the blocks that a sprite has left or come to.
"""

from __future__ import annotations

from math import floor

import numpy as np

from memfit.systems.ninja.drawing import cast, shrink, sprites
from memfit.systems.ninja.sizes import FRAME, HEIGHT, SHRINK, VIEW, WIDTH, Array
from memfit.systems.ninja.world import World

Placed = tuple[str, int, int]


class Patches:
    """Draws the square around the ninja, and what has changed in the overview."""

    def __init__(self, background: Array, overview: Array) -> None:
        self.background = background
        self.overview = overview
        self.view = np.empty(VIEW, np.uint8)
        self.shown: list[Placed] = []

    def begin(self, world: World) -> None:
        """A new game: the overview without any sprite."""
        self.view[:] = self.overview
        self.shown = []

    def observe(self, world: World, frame: Array, view: Array) -> None:
        """Write the square around the ninja and the overview."""
        shown = cast(world)
        left = floor(world.ninja.x + 0.5) - FRAME // 2
        top = floor(world.ninja.y + 0.5) - FRAME // 2
        frame.fill(0)
        x, y = max(left, 0), max(top, 0)
        right, bottom = min(left + FRAME, WIDTH), min(top + FRAME, HEIGHT)
        self._compose(frame[x - left : right - left, y - top : bottom - top, 0], x, y, shown)
        self._renew(shown)
        view[..., 0] = self.view

    def _renew(self, shown: list[Placed]) -> None:
        known = sprites()
        for name, x, y in set(self.shown) ^ set(shown):
            width, height = known[name].grey.shape
            left, top = x // SHRINK, y // SHRINK
            right, bottom = -(-(x + width) // SHRINK), -(-(y + height) // SHRINK)
            patch = np.empty(((right - left) * SHRINK, (bottom - top) * SHRINK), np.uint8)
            self._compose(patch, left * SHRINK, top * SHRINK, shown)
            self.view[left:right, top:bottom] = shrink(patch)
        self.shown = shown

    def _compose(self, out: Array, x: int, y: int, shown: list[Placed]) -> None:
        """Write the pixels of a rectangle of the whole picture that begins at x, y."""
        width, height = out.shape
        out[:] = self.background[x : x + width, y : y + height]
        known = sprites()
        for name, sprite_x, sprite_y in shown:
            sprite = known[name]
            left, top = sprite_x - x, sprite_y - y
            right, bottom = left + sprite.grey.shape[0], top + sprite.grey.shape[1]
            if right <= 0 or bottom <= 0 or left >= width or top >= height:
                continue
            of_sprite = np.s_[
                max(0, -left) : min(width, right) - left, max(0, -top) : min(height, bottom) - top
            ]
            here = out[max(0, left) : right, max(0, top) : bottom]
            np.copyto(here, sprite.grey[of_sprite], where=sprite.cover[of_sprite])
