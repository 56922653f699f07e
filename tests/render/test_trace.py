"""A recorded run in a few lines."""

from __future__ import annotations

from dataclasses import replace

from memfit.model import Event, EventKind, Forecast, Growth, Trace
from memfit.render.blocks import Text
from memfit.render.trace import trace_summary
from tests.samples_live import trace

UNKNOWN = Forecast(growth=Growth.UNKNOWN, bytes_per_second=0.0)


def texts(of: Trace, place: str = "") -> list[str]:
    return [block.text for block in trace_summary(of, UNKNOWN, place) if isinstance(block, Text)]


def test_a_run_that_nobody_could_read_still_says_what_ended_it() -> None:
    killed = Event(seconds=0.1, kind=EventKind.OUT_OF_MEMORY, text="killed by the kernel")
    ended = replace(trace(), readings=(), events=(killed,), exit_code=137)
    assert texts(ended) == [
        "ended with exit code 137 before it could be read",
        "killed by the kernel",
    ]


def test_a_recording_without_an_end_says_so() -> None:
    open_end = replace(trace(), exit_code=None)
    assert texts(open_end)[0].endswith(" s, its end is not recorded")
    assert texts(replace(open_end, readings=()))[0] == (
        "it was never read, and its end is not recorded"
    )


def test_a_recording_that_ended_before_the_run_is_not_said_to_be_whole() -> None:
    assert texts(trace(), "night.db")[-1] == "recorded in night.db: memfit explain night.db"
    cut = replace(trace(), cut="database or disk is full")
    assert texts(cut, "night.db")[-1] == (
        "recorded in night.db only until recording ended: memfit explain night.db"
    )
