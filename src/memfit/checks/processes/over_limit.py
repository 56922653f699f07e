"""MF411: a recorded run went over its limit.

What: a recording has the moment at which its run was over the limit, was ended for that by memfit
or by the kernel, or the kernel ended a process of it for want of memory.

Why: what the run had learned since its last checkpoint is lost. A plan says before the next run
what it needs, and which knobs decide it.

Bad:
    model.learn(10_000_000)  # memfit run --limit 8GiB: ended at 8.1 GiB

Good:
    model = make_model(n_envs=4)  # memfit plan --limit 8GiB says that 4 envs fit
    model.learn(10_000_000)
"""

from __future__ import annotations

from collections.abc import Iterator

from memfit.model import EventKind, Finding, Forecast, Severity, Trace
from memfit.units import format_bytes

CODE = "MF411"
_ENDINGS = (EventKind.OUT_OF_MEMORY, EventKind.KILLED, EventKind.TERMINATED)


def find_in_recording(trace: Trace, forecast: Forecast) -> Iterator[Finding]:
    peak, limit = trace.peak, trace.limit
    ended = next((e for kind in _ENDINGS for e in trace.events if e.kind is kind), None)
    over = peak is not None and limit is not None and peak.bytes > limit.bytes
    if peak is None or not (ended or over):
        return
    seconds = ended.seconds if ended else peak.seconds
    bound = f" of {format_bytes(limit.bytes)} ({limit.source})" if limit else ""
    why = f": {ended.text}" if ended else ""
    yield Finding(
        code=CODE,
        severity=Severity.ERROR,
        message=f"the run held {format_bytes(peak.bytes)}{bound}{why}",
        where=f"at {seconds:.0f} s",
        bytes=peak.bytes,
        fix="memfit plan with the same settings: what makes it fit; memfit explain this file: rows",
    )
