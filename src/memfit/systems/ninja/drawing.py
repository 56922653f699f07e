"""Drawing with pygame, without a window: tiles, sprites and the whole picture.

Arrays of pixels are indexed by column, then row, as pygame's are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import floor

import numpy as np

from memfit.systems.headless import pygame
from memfit.systems.ninja.level import Level
from memfit.systems.ninja.sizes import HEIGHT, SHRINK, TILE, VIEW, WIDTH, Array
from memfit.systems.ninja.world import ARMED, World

Colour = tuple[int, int, int]
NOTHING: Colour = (255, 0, 255)
AIR: Colour = (0, 0, 0)
ROCK: Colour = (36, 38, 44)
EDGE: Colour = (72, 76, 84)
POSES = 72  # pictures of the running ninja


def grey_of(pixels: Array) -> Array:
    """Grey of colours along the last axis, in whole numbers, so that all ways to it agree."""
    wide = pixels.astype(np.uint16)
    red, green, blue = wide[..., 0], wide[..., 1], wide[..., 2]
    return ((red * 77 + green * 150 + blue * 29 + 128) >> 8).astype(np.uint8)


def shrink(grey: Array) -> Array:
    """The mean of every 6 x 6 pixels."""
    across, down = grey.shape[0] // SHRINK, grey.shape[1] // SHRINK
    blocks = grey.reshape(across, SHRINK, down, SHRINK)
    half, count = SHRINK * SHRINK // 2, SHRINK * SHRINK
    sums: Array = blocks.sum(axis=(1, 3), dtype=np.uint16)
    return ((sums + half) // count).astype(np.uint8)


@dataclass(frozen=True, kw_only=True)
class Sprite:
    """A small picture: as a surface, and as grey pixels with what covers the background."""

    surface: pygame.Surface
    grey: Array
    cover: Array


def _sprite(surface: pygame.Surface) -> Sprite:
    pixels = pygame.surfarray.array3d(surface)
    cover = (pixels != np.array(NOTHING, np.uint8)).any(axis=2)
    grey = grey_of(pixels)
    for array in (grey, cover):
        array.flags.writeable = False
    return Sprite(surface=surface, grey=grey, cover=cover)


def _blank(width: int, height: int) -> pygame.Surface:
    surface = pygame.Surface((width, height), 0, 32)
    surface.fill(NOTHING)
    surface.set_colorkey(NOTHING)
    return surface


@cache
def sprites() -> dict[str, Sprite]:
    """All still sprites; every environment of a process uses the same."""
    drawn = {"ninja": pose(0)}
    for name, colour in (("mine safe", (90, 160, 200)), ("mine armed", (230, 70, 60))):
        drawn[name] = _blank(11, 11)
        pygame.draw.circle(drawn[name], colour, (5, 5), 5)
    for name, colour in (("switch", (240, 200, 60)), ("switch used", (110, 95, 40))):
        drawn[name] = _blank(12, 12)
        drawn[name].fill(colour)
    for name, colour in (("exit", (90, 60, 120)), ("exit open", (190, 120, 255))):
        drawn[name] = _blank(18, 22)
        pygame.draw.rect(drawn[name], colour, (0, 0, 18, 22), 3)
    return {name: _sprite(surface) for name, surface in drawn.items()}


def pose(number: int) -> pygame.Surface:
    """The ninja; the first pose is the one that observations show."""
    surface = _blank(18, 18)
    pygame.draw.rect(surface, (150, 152, 160), (2, 0, 14, 14))
    swing = number % 12 - 6 if number else 0
    pygame.draw.line(surface, (150, 152, 160), (8, 13), (8 + swing, 17), 2)
    pygame.draw.line(surface, (150, 152, 160), (9, 13), (9 - swing, 17), 2)
    return surface


def animation() -> list[pygame.Surface]:
    """Every pose of the ninja, with an alpha channel."""
    poses = []
    for number in range(POSES):
        surface = pygame.Surface((TILE, TILE), pygame.SRCALPHA, 32)
        surface.blit(pose(number), (3, 3))
        poses.append(surface)
    return poses


def draw_background(level: Level) -> pygame.Surface:
    """The tiles of a level: a picture of 1056 x 600."""
    surface = pygame.Surface((WIDTH, HEIGHT), 0, 32)
    surface.fill(AIR)
    for column, row in np.argwhere(level.solid).tolist():
        place = pygame.Rect(column * TILE, row * TILE, TILE, TILE)
        surface.fill(ROCK, place)
        if row and not level.solid[column, row - 1]:
            surface.fill(EDGE, (place.left, place.top, TILE, 2))
    return surface


# A level's background in colour, the same for all environments of a process.
shared_background = cache(draw_background)


def cast(world: World) -> list[tuple[str, int, int]]:
    """What is drawn, from the back to the front: the name of a sprite and its upper left corner."""
    shown = [
        ("switch used" if world.switched else "switch", *world.switch),
        ("exit open" if world.switched else "exit", *world.exit),
    ]
    shown += [
        ("mine armed" if state == ARMED else "mine safe", int(x), int(y))
        for x, y, _, state, *_ in world.mines[: world.count].tolist()
    ]
    shown.append(("ninja", floor(world.ninja.x + 0.5), floor(world.ninja.y + 0.5)))
    known = sprites()
    return [
        (name, x - known[name].grey.shape[0] // 2, y - known[name].grey.shape[1] // 2)
        for name, x, y in shown
    ]


def draw_scene(
    screen: pygame.Surface,
    background: pygame.Surface,
    world: World,
    poses: list[pygame.Surface] | None = None,
) -> None:
    """Draw the whole picture, with the ninja running where its poses are given."""
    screen.blit(background, (0, 0))
    known = sprites()
    for name, x, y in cast(world):
        if name == "ninja" and poses:
            screen.blit(poses[world.steps % len(poses)], (x - 3, y - 3))
        else:
            screen.blit(known[name].surface, (x, y))


def picture(level: Level, world: World, poses: list[pygame.Surface] | None) -> Array:
    """The whole picture as height x width x 3, for people."""
    screen = pygame.Surface((WIDTH, HEIGHT), 0, 32)
    draw_scene(screen, draw_background(level), world, poses)
    return np.ascontiguousarray(pygame.surfarray.pixels3d(screen).swapaxes(0, 1))


assert (WIDTH // SHRINK, HEIGHT // SHRINK) == VIEW
