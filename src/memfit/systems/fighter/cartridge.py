"""A game as files: its cartridge, and where in its memory a training looks."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memfit.errors import UsageError
from memfit.systems.fighter.rom.build import CARTRIDGE, HEADER_CHECKSUM, header_checksum

ADDRESSES = CARTRIDGE.with_suffix(".toml")
Rule = tuple[Callable[[Any], bool], str]  # whether a value is allowed, and what to give

BANK = 16 << 10
BUTTONS = ("a", "b", "start", "select", "left", "right", "up", "down")


@dataclass(frozen=True, kw_only=True)
class Reward:
    """Where the health of both fighters is; a full bar is worth 1."""

    health: int
    opponent_health: int
    full_health: int


@dataclass(frozen=True, kw_only=True)
class Addresses:
    """What a training reads and writes of a game's memory; what is missing is not there."""

    reward: Reward | None = None
    state: int | None = None
    over: frozenset[int] = frozenset()
    random: range = range(0)
    start_frames: int = 0
    start_button: str | None = None
    then_frames: int = 0


def read_cartridge(file: Path | None) -> bytes:
    """The bytes of a cartridge that the console would start, or a clear refusal."""
    file = file or CARTRIDGE
    try:
        image = file.read_bytes()
    except FileNotFoundError:
        raise UsageError(
            f"there is no ROM {file}: give the path of a Game Boy ROM, or leave out --rom "
            "for the game that comes with memfit"
        ) from None
    except OSError as error:
        raise UsageError(f"cannot read the ROM {file}: {error.strerror}. Give a file") from None
    if not image or len(image) % BANK:
        raise UsageError(
            f"{file} is no Game Boy ROM: it has {len(image):,} bytes, and a ROM has a multiple of "
            f"{BANK:,}. Give another file"
        )
    if image[HEADER_CHECKSUM] != header_checksum(image):
        raise UsageError(
            f"{file} is no Game Boy ROM: the checksum of its header is "
            f"{image[HEADER_CHECKSUM]:#04x} and should be {header_checksum(image):#04x}. "
            "Give another file"
        )
    return image


def read_addresses(rom: Path | None, file: Path | None) -> Addresses:
    """The addresses of our own game, of the given file, or none for an unknown game."""
    if file is None:
        return Addresses() if rom is not None else parse_addresses(ADDRESSES)
    return parse_addresses(file)


def read_state(file: Path | None) -> bytes | None:
    """A savestate, if one is given."""
    if file is None:
        return None
    try:
        return file.read_bytes()
    except OSError as error:
        raise UsageError(
            f"cannot read the savestate {file}: {error.strerror}. Give one of PyBoy's"
        ) from None


def parse_addresses(file: Path) -> Addresses:
    """Read a file of addresses."""
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"cannot read the addresses {file}: {error}. Give a TOML file") from None
    for name, table in tables.items():
        if name not in TABLES or not isinstance(table, dict):
            raise UsageError(f"{file}: {name} is no table of addresses: give {', '.join(TABLES)}")
        for key in table.keys() - TABLES[name].keys():
            known = ", ".join(sorted(TABLES[name]))
            raise UsageError(f"{file}: {name}.{key} is not known: give {known}")
        for key, (allowed, text) in TABLES[name].items():
            if not allowed(table.get(key)) and (key in table or name != "start"):
                raise UsageError(f"{file}: {name}.{key} is {table.get(key)!r}: give {text}")
    reward, random = tables.get("reward"), tables.get("random", {"address": 0, "size": 0})
    episode, start = tables.get("episode", {}), tables.get("start", {})
    return Addresses(
        reward=None if reward is None else Reward(**reward),
        state=episode.get("address"),
        over=frozenset(episode.get("over", ())),
        random=range(random["address"], random["address"] + random["size"]),
        start_frames=start.get("frames", 0),
        start_button=start.get("button"),
        then_frames=start.get("then", 0),
    )


def _number(first: int, last: int) -> Rule:
    """A whole number within these bounds."""
    return (
        lambda value: type(value) is int and first <= value <= last,
        f"a whole number from {first:#x} to {last:#x}",
    )


def _are_bytes(values: Any) -> bool:
    return isinstance(values, list) and bool(values) and all(map(BYTE[0], values))


MEMORY, FRAMES, BYTE = _number(0x8000, 0xFFFF), _number(0, 99_999), _number(0, 255)
# What a file may have, by table: all of a table, but for the start, must be there.
TABLES: dict[str, dict[str, Rule]] = {
    "reward": {"health": MEMORY, "opponent_health": MEMORY, "full_health": _number(1, 255)},
    "episode": {"address": MEMORY, "over": (_are_bytes, "a list of bytes, such as [4]")},
    "random": {"address": MEMORY, "size": _number(1, 8)},
    "start": {
        "frames": FRAMES,
        "button": (BUTTONS.__contains__, f"one of {', '.join(BUTTONS)}"),
        "then": FRAMES,
    },
}
