"""Pictures as described: the whole screen in colour, then grey, padded, cut and shrunk."""

from __future__ import annotations

from math import floor

import numpy as np

from memfit.systems.headless import pygame
from memfit.systems.ninja.drawing import draw_scene, grey_of, shrink
from memfit.systems.ninja.settings import Memory
from memfit.systems.ninja.sizes import FRAME, HEIGHT, WIDTH, Array
from memfit.systems.ninja.world import World


class FullFrame:
    """Draws all of the screen at every step; what the memory settings leave is copied and kept."""

    def __init__(self, background: pygame.Surface, memory: Memory) -> None:
        self.background = background
        self.memory = memory
        self.screen = pygame.Surface((WIDTH, HEIGHT), 0, 32)
        self.kept: list[Array] = []  # the frames of the last observation, by which it is cached

    def begin(self, world: World) -> None:
        """A new game: nothing to prepare."""

    def observe(self, world: World, frame: Array, view: Array) -> None:
        """Write the square around the ninja and the overview."""
        draw_scene(self.screen, self.background, world)
        memory = self.memory
        if memory.views:
            # The view locks the surface: it must be gone before anything is drawn again.
            pixels = pygame.surfarray.pixels3d(self.screen)
        else:
            pixels = pygame.surfarray.array3d(self.screen)
        kept = [] if memory.views else [pixels]
        if memory.one_stabilisation:
            pixels = self._stabilise(pixels, kept)
        grey = self._grey(pixels, kept) if memory.one_grey else None
        mine = self._grey(pixels, kept) if grey is None else grey
        frame[..., 0] = self._around(mine, world, kept)
        mine = self._grey(pixels, kept) if grey is None else grey
        view[..., 0] = self._settled(shrink(mine), kept)
        self.kept = kept

    def _grey(self, pixels: Array, kept: list[Array]) -> Array:
        return self._settled(grey_of(self._settled(pixels, kept)), kept)

    def _around(self, grey: Array, world: World, kept: list[Array]) -> Array:
        half = FRAME // 2
        padded = np.pad(grey, half)
        left, top = floor(world.ninja.x + 0.5), floor(world.ninja.y + 0.5)
        return self._settled(padded[left : left + FRAME, top : top + FRAME], kept)

    def _settled(self, pixels: Array, kept: list[Array]) -> Array:
        """Stabilise at this stage too, unless once is enough."""
        return pixels if self.memory.one_stabilisation else self._stabilise(pixels, kept)

    def _stabilise(self, pixels: Array, kept: list[Array]) -> Array:
        """Pixels in one block of bytes that nothing else writes."""
        if self.memory.views:
            return np.asarray(pixels, np.uint8)
        done = np.array(pixels, np.uint8, order="C", copy=True)
        kept.append(done)
        return done
