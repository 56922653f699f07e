"""A console with our game in it, for tests that play."""

from __future__ import annotations

from memfit.systems.fighter.cartridge import read_cartridge
from memfit.systems.fighter.console import Console
from memfit.systems.fighter.rom.build import assemble

SYMBOLS = assemble().symbols
STATE, RANDOM = SYMBOLS["STATE"], SYMBOLS["RANDOM"]


def of(fighter: str, what: str) -> int:
    """Where in memory a fighter has something."""
    return SYMBOLS[fighter] << 8 | SYMBOLS[what]


def switched_on() -> Console:
    """At the title."""
    console = Console(read_cartridge(None))
    console.run(90)
    assert console[STATE] == SYMBOLS["TITLE"]
    return console


def fighting() -> Console:
    """In the first frames of a fight, with an opponent who does not decide anything for a while."""
    console = switched_on()
    console.hold("start")
    console.run(3)
    console.hold(None)
    console.run(SYMBOLS["READY_TIME"] + 1)
    assert console[STATE] == SYMBOLS["FIGHT"]
    still(console)
    return console


def still(console: Console) -> None:
    """The opponent wants nothing for the next 250 frames."""
    console[SYMBOLS["THINK"]] = 255
    console[of("OPPONENT", "COMMAND")] = 0


def near(console: Console, distance: int) -> None:
    """Put the fighters at this distance."""
    console[of("PLAYER", "X")] = 60
    console[of("OPPONENT", "X")] = 60 + distance
