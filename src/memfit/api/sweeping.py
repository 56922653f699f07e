"""`sweep`: run a program at each value of a setting and measure its peaks."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from memfit.errors import UsageError
from memfit.model import Outcome, Point, Sweep

Progress = Callable[[str], None]

# The share of this machine's memory that a measured program may take.
_ROOM = 0.9
_LARGEST = 2**40
_NO_MEMORY = ("MemoryError", "can't allocate memory", "Cannot allocate memory", "bad_alloc")
_KILLED = -9


def sweep(
    command: Sequence[str],
    *,
    over: str,
    limit: int | None = None,
    on: Sequence[str] = (),
    timeout: float = 600.0,
    progress: Progress | None = None,
) -> Sweep:
    """Measure a command's peak at each value of a setting, up to one run that does not fit.

    `over` is `agents=100,1000` or `agents=1..20000`, which doubles; the value takes the place of
    `{agents}` in the command.
    """
    from memfit.analyses.capacity import default_hardware, parse_hardware
    from memfit.analyses.line import fit, largest
    from memfit.measure import limits
    from memfit.model import Limit
    from memfit.units import format_bytes

    started = time.monotonic()
    knob, values = parse_over(over)
    hole = f"{{{knob}}}"
    if not any(hole in word for word in command):
        raise UsageError(
            f"the command after -- does not use {hole}, so that every run would be the same: "
            f"write it where the value goes, as in: memfit sweep --over {over} -- "
            f"python train.py --{knob} {hole}"
        )
    hardware = [parse_hardware(name) for name in on] or default_hardware()
    found = limits.memory_limit()
    room = int(found.bytes * _ROOM)
    used = Limit(bytes=room, source=f"{_ROOM:.0%} of {found.source}")
    if limit is not None and limit < room:
        used = Limit(bytes=limit, source="--limit")
    points: list[Point] = []
    for number, value in enumerate(values, 1):
        if progress is not None:
            progress(f"run {number} of {len(values)}: {knob} {value:,}")
        point = _point([w.replace(hole, str(value)) for w in command], value, used.bytes, timeout)
        points.append(point)
        if progress is not None:
            progress(f"{point.outcome.value}: {format_bytes(point.peak_bytes)}")
        if point.outcome is not Outcome.DONE:
            break
    line = fit([(p.value, p.peak_bytes) for p in points if p.outcome is Outcome.DONE])
    return Sweep(
        command=tuple(command),
        knob=knob,
        limit_bytes=used.bytes,
        limit_source=used.source,
        points=tuple(points),
        line=line,
        largest={h.name: (h.bytes, largest(line, h.bytes)) for h in hardware} if line else {},
        seconds=time.monotonic() - started,
    )


def _point(command: Sequence[str], value: int, memory: int, timeout: float) -> Point:
    from memfit.measure.command import measure

    done = measure(command, memory=memory, timeout=timeout)
    outcome = Outcome.DONE
    if done.timed_out:
        outcome = Outcome.TIMED_OUT
    elif done.over_limit or done.exit_code == _KILLED:
        outcome = Outcome.OUT_OF_MEMORY
    elif done.exit_code:
        starved = any(text in done.output for text in _NO_MEMORY)
        outcome = Outcome.OUT_OF_MEMORY if starved else Outcome.FAILED
    return Point(
        value=value,
        peak_bytes=done.peak_bytes,
        outcome=outcome,
        seconds=done.seconds,
        exit_code=done.exit_code,
        said=done.output,
    )


def parse_over(text: str) -> tuple[str, list[int]]:
    """`agents=100,1000` or `agents=1..4096` as a name and its values, smallest first."""
    name, equals, rest = text.partition("=")
    name = name.strip()
    low, dots, high = rest.partition("..")
    try:
        values = _doubled(int(low), int(high)) if dots else [int(v) for v in rest.split(",")]
    except ValueError:
        values = []
    if not equals or not name.isidentifier() or not values or min(values) < 1:
        raise UsageError(
            f"--over {text}: write a name and whole numbers above zero, such as agents=100,1000 "
            "or agents=1..20000"
        )
    if max(values) > _LARGEST:
        raise UsageError(f"--over {text}: {max(values):,} is beyond anything: give less")
    return name, sorted(set(values))


def _doubled(low: int, high: int) -> list[int]:
    if low < 1 or high < low:
        return []
    values = [low]
    while values[-1] * 2 < high:
        values.append(values[-1] * 2)
    return values if values[-1] == high else [*values, high]
