"""Saved replay buffers whose header was changed by somebody who knows how to make a checksum."""

from __future__ import annotations

import copy
import json
import random
import struct
import zlib
from typing import Any

from memfit.dropins.windows.saving import MAGIC, VERSION

HEAD = struct.Struct("<8sIQI")
ODD: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1, 2, 3, 7, 64, 100, 2**31, 2**40, 2**63, 10**30, 1.0, 0.5, -2.5),
    *(
        "",
        "x",
        "<i4",
        "<i8",
        "|O",
        "<f8",
        "zstd",
        [],
        [[]],
        [0],
        [1, 2],
        {},
        {"x": 1},
        [{}],
        [[{}]],
    ),
)


def split(data: bytes) -> tuple[dict[str, Any], bytes]:
    """The header of a file, and its pieces."""
    length = HEAD.unpack_from(data)[2]
    header: dict[str, Any] = json.loads(data[HEAD.size : HEAD.size + length])
    return header, data[HEAD.size + length :]


def joined(header: Any, pieces: bytes) -> bytes:
    """A file with this header, its checksum right."""
    text = json.dumps(header).encode()
    return HEAD.pack(MAGIC, VERSION, len(text), zlib.crc32(text)) + text + pieces


def places(found: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value of a header."""
    keys = found if isinstance(found, dict) else range(len(found) if isinstance(found, list) else 0)
    inner = [place for key in keys for place in places(found[key], (*at, key))]
    return [at, *inner] if at else inner


def fuzzed(good: bytes, seed: int) -> bytes:
    """A good file with another header, or with pieces that are exchanged."""
    draw = random.Random(seed)
    header, pieces = split(good)
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        *way, last = draw.choice(places(header))
        found: Any = header
        for key in way:
            found = found[key]
        change(found, last, draw)
    return joined(header, pieces)


def change(found: Any, key: Any, draw: random.Random) -> None:
    """Change one value: by a little, to another of the same list, or to anything."""
    value, way = found[key], draw.random()
    if way < 0.1:
        del found[key]
    elif way < 0.2 and isinstance(found, list):
        found.append(copy.deepcopy(draw.choice((value, draw.choice(ODD)))))
    elif way < 0.35 and isinstance(found, list):
        other = draw.randrange(len(found))
        found[key], found[other] = found[other], found[key]
    elif way < 0.7 and type(value) is int:
        found[key] = value + draw.choice((-64, -2, -1, 1, 2, 64))
    elif way < 0.7 and type(value) is bool:
        found[key] = not value
    else:
        found[key] = copy.deepcopy(draw.choice(ODD))
