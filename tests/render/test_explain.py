"""An explanation states how many readings it rests on."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

from memfit.model import HeldReadings, Inside, Kind, Ledger, const
from memfit.render import explain_short
from memfit.render.explain import _readings, inside_json
from memfit.render.terminal import to_terminal, to_text
from memfit.units import shortened
from tests.samples import row
from tests.samples_live import explanation

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


def test_an_explanation_fits_two_screens_and_adds_up() -> None:
    rows = [
        row(f"agent.buffers[{i}]." + "part." * 30, Kind.BUFFER, const(MIB), ()) for i in range(90)
    ]
    rows += [row("malloc.heap", Kind.HEAP, const(60 * MIB), ())]
    many = replace(
        explanation(), ledger=Ledger(components=tuple(rows)), pss_bytes=150 * MIB, inside=None
    )
    lines = to_text(explain_short(many), width=80).splitlines()
    assert len(lines) <= 48 and max(map(len, lines)) <= 80
    assert any("90 smaller rows" in line and "90.0" in line for line in lines)


def test_a_long_name_keeps_its_beginning_and_its_end() -> None:
    assert shortened("/home/somebody/project/train.py", 16) == "/home…t/train.py"
    assert shortened("train.py", 16) == "train.py"


@pytest.mark.parametrize(("told", "width"), [("80", 80), ("", 100), ("many", 100), ("3", 100)])
def test_text_in_a_pipe_is_as_wide_as_columns_says(
    told: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", told)
    page = io.StringIO()
    to_terminal(explain_short(explanation()), page)
    longest = max(map(len, page.getvalue().splitlines()))
    assert width - 15 <= longest <= width
