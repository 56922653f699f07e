"""A game as files: its cartridge, and where in its memory a training looks."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memfit.errors import UsageError
from memfit.systems.fighter.rom.build import CARTRIDGE, HEADER_CHECKSUM, header_checksum

ADDRESSES = CARTRIDGE.with_suffix(".toml")
BANK = 16 << 10
MEMORY = range(0x8000, 0x10000)  # addresses of the console's own memory
BUTTONS = ("a", "b", "start", "select", "left", "right", "up", "down")
KEYS = {
    "reward": {"health", "opponent_health", "full_health"},
    "episode": {"address", "over"},
    "random": {"address", "size"},
    "start": {"frames", "button", "then"},
}


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
        if name not in KEYS or not isinstance(table, dict):
            raise UsageError(f"{file}: {name} is no table of addresses: give {', '.join(KEYS)}")
        for key in set(table) - KEYS[name]:
            raise UsageError(f"{file}: {name}.{key} is not known: give {_listed(KEYS[name])}")

    reward = None
    if "reward" in tables:
        reward = Reward(
            health=_number(file, tables, "reward", "health", MEMORY),
            opponent_health=_number(file, tables, "reward", "opponent_health", MEMORY),
            full_health=_number(file, tables, "reward", "full_health", range(1, 256)),
        )
    state, over = None, frozenset[int]()
    if "episode" in tables:
        state = _number(file, tables, "episode", "address", MEMORY)
        values = tables["episode"].get("over")
        if not isinstance(values, list) or not values or not all(_is_byte(v) for v in values):
            raise UsageError(f"{file}: episode.over must be a list of bytes, such as [4]")
        over = frozenset(values)
    random = range(0)
    if "random" in tables:
        first = _number(file, tables, "random", "address", MEMORY)
        random = range(first, first + _number(file, tables, "random", "size", range(1, 9)))
    frames = range(100_000)
    button = tables.get("start", {}).get("button")
    if button is not None and button not in BUTTONS:
        raise UsageError(f"{file}: start.button is {button!r}: give one of {', '.join(BUTTONS)}")
    return Addresses(
        reward=reward,
        state=state,
        over=over,
        random=random,
        start_frames=_number(file, tables, "start", "frames", frames, default=0),
        start_button=button,
        then_frames=_number(file, tables, "start", "then", frames, default=0),
    )


def _number(
    file: Path,
    tables: Mapping[str, Any],
    table: str,
    key: str,
    allowed: range,
    default: int | None = None,
) -> int:
    value = tables.get(table, {}).get(key, default)
    if type(value) is not int or value not in allowed:
        raise UsageError(
            f"{file}: {table}.{key} is {value!r}: give a whole number from {allowed.start:#x} "
            f"to {allowed.stop - 1:#x}"
        )
    return value


def _is_byte(value: object) -> bool:
    return type(value) is int and 0 <= value < 256


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names))
