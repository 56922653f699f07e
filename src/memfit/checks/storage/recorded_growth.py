"""MF119: a recorded run grew to its end, and filled nothing.

What: the memory of a recorded run went up at one pace until it ended, and no block that was
reserved was being filled meanwhile.

Why: a run that would have gone on would have gone on growing, until its limit. What fills, as a
replay does, comes to an end; what is added to a list at each step does not.

Bad:
    while True:
        history.append(env.step(policy(observation)))

Good:
    history = collections.deque(maxlen=1000)
    while True:
        history.append(env.step(policy(observation)))
"""

from __future__ import annotations

from collections.abc import Iterator

from memfit.model import Finding, Forecast, Growth, Severity, Trace
from memfit.units import format_bytes

CODE = "MF119"
_HOUR = 3600


def find_in_recording(trace: Trace, forecast: Forecast) -> Iterator[Finding]:
    if forecast.growth is not Growth.LEAKING:
        return
    whose = f" in {', '.join(forecast.members)}" if forecast.members else ""
    hourly = format_bytes(round(forecast.bytes_per_second * _HOUR))
    yield Finding(
        code=CODE,
        severity=Severity.WARNING,
        message=f"the run grew by {format_bytes(forecast.grown_bytes)}{whose}, {hourly} an hour, "
        "and no buffer was being filled",
        where=f"from {forecast.since or 0:.0f} s on",
        bytes=forecast.grown_bytes,
        fix="memfit profile its env, or memfit explain its PID while it runs: they name the holder",
    )
