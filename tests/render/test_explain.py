"""An explanation states how many readings it rests on."""

from __future__ import annotations

import pytest

from memfit.model import HeldReadings, Inside
from memfit.render.explain import _readings, inside_json

MIB = 2**20
ONCE = HeldReadings(pid=3, named=(60 * MIB,), private=(100 * MIB,))
AGAIN = HeldReadings(
    pid=4, named=(50 * MIB, 90 * MIB, 70 * MIB), private=(100 * MIB, 100 * MIB, 100 * MIB), kept=1
)


def inside(*readings: HeldReadings) -> Inside:
    kept = sum(r.named[r.kept] for r in readings) / sum(r.private[r.kept] for r in readings)
    return Inside(
        holders=(),
        repeated=(),
        asked=tuple(r.pid for r in readings),
        held_share=kept,
        seconds=1.0,
        longest_hold_seconds=0.01,
        readings=readings,
    )


@pytest.mark.parametrize(
    ("readings", "taken", "dropped", "first", "said"),
    [
        ((ONCE,), 1, 0, 0.6, "one process read once, no reading dropped"),
        ((ONCE, ONCE), 2, 0, 0.6, "2 processes read once, no reading dropped"),
        (
            (AGAIN,),
            3,
            2,
            0.5,
            (
                "one process read 3 times in all, 2 of these readings dropped for one that leaves "
                "less without a holder: 50.0% had one in the first, 90.0% in what is kept"
            ),
        ),
        (
            (ONCE, AGAIN),
            4,
            2,
            0.55,
            (
                "2 processes read 4 times in all, 2 of these readings dropped for one that leaves "
                "less without a holder: 55.0% had one in the first, 75.0% in what is kept"
            ),
        ),
    ],
)
def test_readings_are_counted_and_the_first_is_told(
    readings: tuple[HeldReadings, ...], taken: int, dropped: int, first: float, said: str
) -> None:
    found = inside(*readings)
    assert (found.taken, found.dropped) == (taken, dropped)
    assert found.first_held_share == pytest.approx(first)
    assert _readings(found) == said
    told = inside_json(found)["readings"]
    assert (told["taken"], told["dropped"], told["first_held_share"]) == (taken, dropped, first)


def test_json_has_all_readings_of_each_process() -> None:
    assert inside_json(inside(ONCE, AGAIN))["readings"]["processes"] == [
        {"pid": 3, "held_shares": [0.6], "kept": 0},
        {"pid": 4, "held_shares": [0.5, 0.9, 0.7], "kept": 1},
    ]
