"""The game's pictures: the tiles of scene and letters, and the fighters, from two PNG files.

White is the lightest of four shades (nothing, in a fighter), black the darkest.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

Shades = np.ndarray[Any, np.dtype[np.uint8]]

SOURCE = Path(__file__).parent / "source"
SIDE = 8  # of a tile
WIDTH, HEIGHT = 24, 32  # of a fighter
FIRST_LETTER = 16
# Tiles of texts, in the order of the picture: 0 is an empty one.
LETTERS = {" ": 0} | {
    letter: FIRST_LETTER + i for i, letter in enumerate("0123456789ADEIKLMNOPRSTUWY")
}


def tiles() -> bytes:
    """All tiles, from number 0 on: scene and letters, then each action of a fighter."""
    scene, fighters = read_shades("tiles"), read_shades("fighters")
    rows, columns = (size // SIDE for size in scene.shape)
    # A fighter is two rows of three sprites of 8 x 16, each of two tiles.
    sprites = fighters.reshape(HEIGHT // (2 * SIDE), 2, SIDE, -1, WIDTH // SIDE, SIDE)
    parts = scene.reshape(rows, SIDE, columns, SIDE).swapaxes(1, 2)
    return as_tiles(parts) + as_tiles(sprites.transpose(3, 0, 4, 1, 2, 5))


def read_shades(name: str) -> Shades:
    """The shades of a picture by row and column: 0 is the lightest, 3 the darkest."""
    from memfit.systems.headless import pygame

    pixels = pygame.surfarray.array3d(pygame.image.load(SOURCE / f"{name}.png"))
    return np.asarray(3 - pixels[:, :, 0].T // 85, np.uint8)


def as_tiles(shades: Shades) -> bytes:
    """Tiles in two bits a pixel, eight pixels along the last axis: low bits, then high bits."""
    return np.packbits(np.stack([shades & 1, shades >> 1], axis=-2), axis=-1).tobytes()
