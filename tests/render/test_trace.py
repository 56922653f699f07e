"""A recorded run in a few lines."""

from __future__ import annotations

from dataclasses import replace

from memfit.model import Event, EventKind, Forecast, Growth
from memfit.render.blocks import Text
from memfit.render.trace import trace_summary
from tests.samples_live import trace

UNKNOWN = Forecast(growth=Growth.UNKNOWN, bytes_per_second=0.0)


def test_a_run_that_nobody_could_read_still_says_what_ended_it() -> None:
    killed = Event(seconds=0.1, kind=EventKind.OUT_OF_MEMORY, text="killed by the kernel")
    ended = replace(trace(), readings=(), events=(killed,), exit_code=137)
    said = [block.text for block in trace_summary(ended, UNKNOWN) if isinstance(block, Text)]
    assert said == ["ended with exit code 137 before it could be read", "killed by the kernel"]
