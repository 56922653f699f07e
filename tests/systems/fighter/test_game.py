"""The game plays: buttons move and strike, blows harm, rounds and matches end."""

from __future__ import annotations

import numpy as np
import pytest
from tests.systems.fighter.playing import STATE, SYMBOLS, fighting, near, of, still, switched_on

from memfit.systems.fighter.console import Console

HEALTH, MINE = of("OPPONENT", "HEALTH"), of("PLAYER", "HEALTH")
FULL = SYMBOLS["FULL_HEALTH"]


def test_the_title_waits_for_start() -> None:
    console = switched_on()
    console.run(200)
    assert console[STATE] == SYMBOLS["TITLE"]
    console.hold("a")
    console.run(10)
    assert console[STATE] == SYMBOLS["TITLE"]
    console.hold("start")
    console.run(5)
    assert console[STATE] == SYMBOLS["READY"]
    assert console[SYMBOLS["ROUND"]] == 1


@pytest.mark.parametrize(("button", "way"), [("left", -1), ("right", 1)])
def test_the_player_walks_and_walls_stop_him(button: str, way: int) -> None:
    console = fighting()
    x, other = console[of("PLAYER", "X")], console[of("OPPONENT", "X")]
    console.hold(button)
    console.run(10)
    assert (console[of("PLAYER", "X")] - x) * way in (9, 10)
    assert console[of("PLAYER", "ACTION")] == SYMBOLS["WALK"]
    still(console)
    console.run(100)
    end = SYMBOLS["LEFT_WALL"] if way < 0 else other - SYMBOLS["NEAREST"]
    assert console[of("PLAYER", "X")] == end
    assert console[of("OPPONENT", "X")] == other


@pytest.mark.parametrize(("button", "blow"), [("a", "PUNCH"), ("b", "KICK")])
def test_a_blow_harms_whom_it_reaches_once(button: str, blow: str) -> None:
    reach, harm = SYMBOLS[f"{blow}_REACH"], SYMBOLS[f"{blow}_HARM"]
    for distance, left in ((reach - 1, FULL - harm), (reach, FULL)):
        console = fighting()
        near(console, distance)
        console.hold(button)
        console.run(2)
        assert console[of("PLAYER", "ACTION")] == SYMBOLS[blow]
        assert console[HEALTH] == FULL  # it takes a while to arrive
        console.hold(None)
        console.run(SYMBOLS[f"{blow}_TIME"])
        assert console[HEALTH] == left
        assert console[of("PLAYER", "ACTION")] == SYMBOLS["STAND"]
        assert console[MINE] == FULL


def test_a_blow_drives_back_and_stuns() -> None:
    console = fighting()
    near(console, 20)
    x = console[of("OPPONENT", "X")]
    console.hold("a")
    console.run(7)
    assert console[of("OPPONENT", "ACTION")] == SYMBOLS["HURT"]
    assert console[of("OPPONENT", "X")] == x + SYMBOLS["PUSH"]


def test_a_block_leaves_a_quarter() -> None:
    console = fighting()
    near(console, 20)
    console[of("OPPONENT", "COMMAND")] = 1 << SYMBOLS["KEY_DOWN"]
    console.hold("b")
    console.run(25)
    assert console[HEALTH] == FULL - SYMBOLS["KICK_HARM"] // 4


def test_the_opponent_strikes_too_and_the_player_blocks() -> None:
    for button, harm in ((None, SYMBOLS["PUNCH_HARM"]), ("down", SYMBOLS["PUNCH_HARM"] // 4)):
        console = fighting()
        near(console, 20)
        console[of("OPPONENT", "COMMAND")] = 1 << SYMBOLS["KEY_A"]
        console.hold(button)
        console.run(8)
        assert console[MINE] == FULL - harm


def knock_out(console: Console) -> None:
    still(console)
    near(console, 20)
    console[HEALTH] = 1
    console.hold("a")
    console.run(8)
    console.hold(None)


def test_rounds_and_the_match_end() -> None:
    console = fighting()
    knock_out(console)
    assert (console[STATE], console[HEALTH]) == (SYMBOLS["ROUND_OVER"], 0)
    assert console[of("OPPONENT", "ACTION")] == SYMBOLS["DOWN"]
    assert (console[of("PLAYER", "WINS")], console[of("OPPONENT", "WINS")]) == (1, 0)
    console.run(SYMBOLS["OVER_TIME"] + 1)
    assert (console[STATE], console[SYMBOLS["ROUND"]]) == (SYMBOLS["READY"], 2)
    assert (console[MINE], console[HEALTH]) == (FULL, FULL)
    console.run(SYMBOLS["READY_TIME"] + 1)
    knock_out(console)
    console.run(SYMBOLS["OVER_TIME"] + 1)
    assert (console[STATE], console[of("PLAYER", "WINS")]) == (SYMBOLS["MATCH_OVER"], 2)
    console.run(SYMBOLS["OVER_TIME"] + 1)
    assert (console[STATE], console[SYMBOLS["ROUND"]]) == (SYMBOLS["READY"], 1)
    assert console[of("PLAYER", "WINS")] == 0


@pytest.mark.parametrize(("mine", "his", "wins"), [(9, 8, (1, 0)), (8, 9, (0, 1)), (8, 8, (0, 0))])
def test_when_time_is_up_more_health_wins(mine: int, his: int, wins: tuple[int, int]) -> None:
    console = fighting()
    console[MINE], console[HEALTH] = mine, his
    console[SYMBOLS["SECONDS"]] = 1
    console.run(61)
    assert console[STATE] == SYMBOLS["ROUND_OVER"]
    assert (console[of("PLAYER", "WINS")], console[of("OPPONENT", "WINS")]) == wins


def test_the_clock_counts_in_decimal() -> None:
    console = fighting()
    console[SYMBOLS["SECONDS"]] = 0x20
    console.run(60)
    assert console[SYMBOLS["SECONDS"]] == 0x19


def test_chance_has_all_its_states() -> None:
    """The register of the source, in Python: 65,535 numbers before the first comes again."""
    console = fighting()
    where = SYMBOLS["RANDOM"]

    def following(value: int) -> int:
        return value >> 1 ^ (0xB400 if value & 1 else 0)

    value = console[where] | console[where + 1] << 8
    console.run(1)
    assert console[where] | console[where + 1] << 8 == following(value)
    seen, now = 1, following(1)
    while now != 1:
        seen, now = seen + 1, following(now)
    assert seen == 0xFFFF


def test_health_bars_show_health() -> None:
    """Each point of health is one dark column of a bar of 64."""
    console = fighting()
    console[MINE], console[HEALTH] = 37, 5
    console.run(2)
    row = console.screen()[12, :, 0]
    dark = row == 0x55
    assert int(dark[8:72].sum()) == 37
    assert int(dark[88:152].sum()) == 5
    assert np.array_equal(console.screen()[..., 0], console.screen()[..., 2])  # shades of grey
