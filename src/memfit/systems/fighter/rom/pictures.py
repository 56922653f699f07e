"""The game's pictures: letters, the scene, and fighters drawn from their joints."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

# A picture is rows of shades: 0 is the lightest (nothing, in a fighter), 3 the darkest.
Picture = list[list[int]]
Point = tuple[int, int]

SIDE = 8  # of a tile
WIDTH, HEIGHT = 24, 32  # of a fighter
FIRST_LETTER = 16
FIRST_FIGHTER = 64

GLYPHS = {
    "0": ".###. #...# #..## #.#.# ##..# #...# .###.",
    "1": "..#.. .##.. ..#.. ..#.. ..#.. ..#.. .###.",
    "2": ".###. #...# ....# ..##. .#... #.... #####",
    "3": "####. ....# ....# .###. ....# ....# ####.",
    "4": "#..#. #..#. #..#. ##### ...#. ...#. ...#.",
    "5": "##### #.... ####. ....# ....# #...# .###.",
    "6": ".###. #.... #.... ####. #...# #...# .###.",
    "7": "##### ....# ...#. ...#. ..#.. ..#.. ..#..",
    "8": ".###. #...# #...# .###. #...# #...# .###.",
    "9": ".###. #...# #...# .#### ....# ....# .###.",
    "A": ".###. #...# #...# ##### #...# #...# #...#",
    "D": "####. #...# #...# #...# #...# #...# ####.",
    "E": "##### #.... #.... ####. #.... #.... #####",
    "I": ".###. ..#.. ..#.. ..#.. ..#.. ..#.. .###.",
    "K": "#...# #..#. #.#.. ##... #.#.. #..#. #...#",
    "L": "#.... #.... #.... #.... #.... #.... #####",
    "M": "#...# ##.## #.#.# #.#.# #...# #...# #...#",
    "N": "#...# ##..# ##..# #.#.# #..## #..## #...#",
    "O": ".###. #...# #...# #...# #...# #...# .###.",
    "P": "####. #...# #...# ####. #.... #.... #....",
    "R": "####. #...# #...# ####. #.#.. #..#. #...#",
    "S": ".#### #.... #.... .###. ....# ....# ####.",
    "T": "##### ..#.. ..#.. ..#.. ..#.. ..#.. ..#..",
    "U": "#...# #...# #...# #...# #...# #...# .###.",
    "W": "#...# #...# #...# #.#.# #.#.# ##.## #...#",
    "Y": "#...# #...# .#.#. ..#.. ..#.. ..#.. ..#..",
}
# Tiles of texts: 0 is an empty one.
LETTERS = {" ": 0, **{letter: FIRST_LETTER + i for i, letter in enumerate(GLYPHS)}}

# Each action of a fighter that looks to the right: where his head is, and the lines of his body,
# arms and legs from joint to joint. In the order of the numbers in memory.asm.
POSES: tuple[tuple[Point, Sequence[Sequence[Point]]], ...] = (
    (  # stands
        (11, 5),
        (
            ((11, 9), (11, 19)),
            ((11, 11), (16, 14), (18, 11)),
            ((11, 12), (14, 16), (16, 14)),
            ((11, 19), (8, 25), (7, 30)),
            ((11, 19), (14, 25), (15, 30)),
        ),
    ),
    (  # walks
        (12, 5),
        (
            ((11, 9), (11, 19)),
            ((11, 11), (16, 15), (18, 12)),
            ((11, 12), (13, 16), (15, 15)),
            ((11, 19), (10, 25), (8, 29)),
            ((11, 19), (13, 25), (11, 30)),
        ),
    ),
    (  # punches
        (12, 6),
        (
            ((11, 10), (10, 19)),
            ((11, 12), (17, 11), (22, 11)),
            ((11, 12), (13, 16), (15, 14)),
            ((10, 19), (7, 25), (4, 30)),
            ((10, 19), (15, 24), (16, 30)),
        ),
    ),
    (  # kicks
        (6, 6),
        (
            ((7, 10), (9, 19)),
            ((7, 12), (12, 14)),
            ((7, 12), (3, 15)),
            ((9, 19), (16, 16), (22, 15)),
            ((9, 19), (9, 25), (8, 30)),
        ),
    ),
    (  # blocks
        (9, 10),
        (
            ((9, 14), (9, 22)),
            ((9, 16), (14, 18), (14, 8)),
            ((9, 16), (17, 18), (17, 10)),
            ((9, 22), (5, 26), (6, 30)),
            ((9, 22), (14, 26), (12, 30)),
        ),
    ),
    (  # is hurt
        (5, 8),
        (
            ((7, 12), (10, 20)),
            ((7, 13), (3, 10)),
            ((7, 14), (13, 11)),
            ((10, 20), (8, 26), (6, 30)),
            ((10, 20), (14, 26), (15, 30)),
        ),
    ),
    (  # lies on the ground
        (4, 27),
        (
            ((8, 28), (14, 29)),
            ((9, 28), (11, 25)),
            ((9, 28), (7, 30)),
            ((14, 29), (22, 28)),
            ((14, 29), (22, 30)),
        ),
    ),
)


def tiles() -> bytes:
    """All tiles, from number 0 on."""
    scene = [empty(SIDE, SIDE), *(bar(filled) for filled in range(9)), *ground(), won(), fence()]
    scene += [empty(SIDE, SIDE)] * (FIRST_LETTER - len(scene))
    scene += [glyph(text) for text in GLYPHS.values()]
    scene += [empty(SIDE, SIDE)] * (FIRST_FIGHTER - len(scene))
    return b"".join(as_tile(picture) for picture in scene) + b"".join(
        as_sprites(fighter(head, limbs)) for head, limbs in POSES
    )


def as_tile(picture: Picture) -> bytes:
    """A tile in two bits a pixel: of each row the low bits, then the high ones."""
    return bytes(
        sum((shade >> bit & 1) << 7 - x for x, shade in enumerate(row))
        for row in picture
        for bit in (0, 1)
    )


def as_sprites(picture: Picture) -> bytes:
    """A fighter as two rows of three sprites of 8 x 16, each of two tiles."""
    return b"".join(
        as_tile([row[x : x + SIDE] for row in picture[y : y + SIDE]])
        for top in range(0, HEIGHT, 2 * SIDE)
        for x in range(0, WIDTH, SIDE)
        for y in (top, top + SIDE)
    )


def empty(width: int, height: int) -> Picture:
    """A picture of nothing."""
    return [[0] * width for _ in range(height)]


def glyph(text: str) -> Picture:
    """A letter, one column from the left."""
    picture = empty(SIDE, SIDE)
    for y, row in enumerate(text.split()):
        for x, mark in enumerate(row):
            picture[y][x + 1] = 3 if mark == "#" else 0
    return picture


def bar(filled: int) -> Picture:
    """A piece of a health bar with so many columns filled."""
    row = [2 if x < filled else 0 for x in range(SIDE)]
    edge = [3] * SIDE
    return [[0] * SIDE, edge, *(list(row) for _ in range(4)), edge, [0] * SIDE]


def ground() -> tuple[Picture, Picture]:
    """The floor that fighters stand on, and what is below it."""
    below = [[1 if (x + y) % 4 == 0 else 0 for x in range(SIDE)] for y in range(SIDE)]
    return [[3] * SIDE, [1] * SIDE, *below[2:]], below


def won() -> Picture:
    """The mark of a won round."""
    return [[3 if 1 < x < 6 and 1 < y < 6 else 0 for x in range(SIDE)] for y in range(SIDE)]


def fence() -> Picture:
    """What is behind the fighters."""
    return [[1 if x == 3 or y == 2 else 0 for x in range(SIDE)] for y in range(SIDE)]


def fighter(head: Point, limbs: Sequence[Sequence[Point]]) -> Picture:
    """A fighter from his joints: the body is thick, arms and legs are dark."""
    picture = empty(WIDTH, HEIGHT)
    for i, joints in enumerate(limbs):
        for start, end in pairwise(joints):
            for x, y in line(start, end):
                dot(picture, x, y, size=4 if i == 0 else 2, shade=2 if i == 0 else 3)
    for y in range(-4, 5):
        for x in range(-4, 5):
            if x * x + y * y <= 13:
                dot(picture, head[0] + x, head[1] + y, size=1, shade=1 if x * x + y * y < 9 else 3)
    return picture


def dot(picture: Picture, x: int, y: int, *, size: int, shade: int) -> None:
    """A square around a point, as far as it is in the picture."""
    for row in range(y - size // 2, y - size // 2 + size):
        for column in range(x - size // 2, x - size // 2 + size):
            if 0 <= row < len(picture) and 0 <= column < len(picture[0]):
                picture[row][column] = shade


def line(start: Point, end: Point) -> list[Point]:
    """The points between two joints."""
    steps = max(abs(end[0] - start[0]), abs(end[1] - start[1]), 1)
    return [
        (
            start[0] + (2 * i * (end[0] - start[0]) + steps) // (2 * steps),
            start[1] + (2 * i * (end[1] - start[1]) + steps) // (2 * steps),
        )
        for i in range(steps + 1)
    ]
