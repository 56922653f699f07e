"""Whether calls of a function take more than a limit, or leak: judged in the process itself."""

from __future__ import annotations

import gc
import inspect
import os
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from memfit.analyses.grown_holders import Holders, grown
from memfit.analyses.leak_verdict import growing, judge, suspected
from memfit.errors import UsageError
from memfit.inside.answering import answer
from memfit.inside.pools import malloc_figures
from memfit.measure.kernel.proc import PeakMeter, Tree
from memfit.measure.profile.env_readings import Said, full_reading
from memfit.model.profile import Counted, EnvReading, MemoryVerdict
from memfit.units import format_bytes, parse_bytes

_CALLS, _LEAST_CALLS = 200, 20
_PARTS, _LEGS = 4, 3
_KINDS = tuple(Counted)
_LEAST_ROW = 1024
_SHOWN, _LEAST_SHARE = 2, 0.1  # holders that are named, of at least so much of what grew


def limit_of(args: Sequence[Any], named: Mapping[str, Any]) -> int:
    """The limit that a marker names."""
    if len(args) != 1 or named or not isinstance(args[0], str | int):
        raise UsageError("memfit_limit takes one size, such as '200 MiB'")
    return args[0] if isinstance(args[0], int) else parse_bytes(args[0])


def calls_of(args: Sequence[Any], named: Mapping[str, Any]) -> int:
    """How many calls a marker asks for."""
    calls = named.get("calls", _CALLS)
    if args or set(named) - {"calls"} or type(calls) is not int or calls < _LEAST_CALLS:
        raise UsageError(f"memfit_no_leak takes calls=N, and {_LEAST_CALLS} or more")
    return calls


class Added:
    """What is added to this process, and those below it, from here on."""

    def __init__(self) -> None:
        gc.collect()
        self._meter = PeakMeter()
        self._meter.start()
        self._before = self._meter.now()

    def problem(self, most: int) -> str:
        """What to say if the peak since then is more than so many bytes; else nothing."""
        added = self._meter.peak() - self._before
        if added <= most:
            return ""
        still = self._meter.now() - self._before
        said = f"added {format_bytes(added)} of memory at its peak, and its limit is "
        said += format_bytes(most)
        if still <= added // 2:
            return f"{said}; {format_bytes(max(0, still))} of it are still held"
        rows = sorted(holders().items(), key=lambda row: -row[1][0])
        largest = [f"  {path}: {format_bytes(size)}" for (path, _), (size, _) in rows[:_SHOWN]]
        return "\n".join([f"{said}; the largest of what is held now:", *largest])


def leak_of(call: Callable[[], Any], calls: int) -> str:
    """What to say if calling something again and again leaks; else nothing."""
    if inspect.iscoroutinefunction(inspect.unwrap(call)):
        raise UsageError("memfit_no_leak is not for coroutines: call one in a plain test")
    run = _Calls(call)
    run.go(max(1, calls // 4), leg=0, parts=1)
    run.go(calls, leg=1, parts=1)
    before: Holders = {}
    for leg in range(2, 2 + _LEGS):
        if not suspected(run.readings()):
            return ""
        if leg == 2:
            before = holders()
            run.again(leg=1)  # what was just noted is no growth
        run.go(calls * (1 << (leg - 2)), leg=leg, parts=_PARTS)
    readings = run.readings()
    judged = judge(readings)
    if judged.verdict is not MemoryVerdict.LEAKING:
        return ""
    least = _LEAST_SHARE * judged.grown_bytes
    named = [one for one in grown(before, holders(), readings[-1].frame) if one.bytes >= least]
    what = ", ".join(kind.value for kind in growing(readings))
    lines = [
        (
            f"leaks {format_bytes(round(judged.bytes_per_frame))} a call ({what}), seen over "
            f"{readings[-1].frame:,} calls"
        )
    ]
    lines += [f"  held by {one.path}: {format_bytes(one.bytes)} more" for one in named[:_SHOWN]]
    if not named:
        lines.append("  no variable of the tests or of what they test holds it")
    return "\n".join(lines)


def holders() -> Holders:
    """Bytes and numbers of what this process's variables hold, by path and kind."""
    told = answer({"want": "holders", "least": _LEAST_ROW}, stop=lambda: False)
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for row in told["arrays"]:
        found[row["holder"], "arrays"] = (row["nbytes"], row["count"])
    for row in told["python"]:
        if row["kind"] == "run":
            found[row["holder"], "python"] = (row["nbytes"], row["objects"])
    return found


class _Calls:
    """Calls of a function with readings, which are kept in room that was made before."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.call = call
        self.done = self.count = 0
        self.width = 7 + len(_KINDS)
        self.rows = array("q", bytes(8 * self.width * (2 + _PARTS * (_LEGS + 1))))

    def go(self, calls: int, *, leg: int, parts: int) -> None:
        """So many calls, with a reading after each part of them."""
        for _ in range(parts):
            for _ in range(max(1, calls // parts)):
                self.call()
                self.done += 1
            self._read(leg)

    def again(self, *, leg: int) -> None:
        """Take the last reading once more."""
        self.count -= 1
        self._read(leg)

    def _read(self, leg: int) -> None:
        gc.collect()
        figures = malloc_figures()
        said = Said(
            frames=self.done,
            episodes=self.done,
            ended=True,
            nanoseconds=0,
            in_use=figures.uordblks if figures else 0,
            mapped=figures.hblkhd if figures else 0,
            free=figures.fordblks if figures else 0,
            arena=figures.arena if figures else 0,
            collects=gc.isenabled(),
        )
        found = full_reading(Tree(main=os.getpid()), said, leg, collected=True)
        if found is None:
            raise UsageError("/proc cannot be read here: memfit_no_leak needs it")
        row = [found.frame, leg, found.held, found.free, found.blocks, found.pools, found.apart]
        row += [found.counts.get(kind, 0) for kind in _KINDS]
        for number, value in enumerate(row):
            self.rows[self.count * self.width + number] = value
        self.count += 1

    def readings(self) -> list[EnvReading]:
        """The readings so far."""
        found = []
        for number in range(self.count):
            row = self.rows[number * self.width : (number + 1) * self.width]
            found.append(
                EnvReading(
                    frame=row[0],
                    episode=row[0],
                    seconds=0.0,
                    held=row[2],
                    whole=row[2],
                    counts=dict(zip(_KINDS, row[7:], strict=True)),
                    free=row[3],
                    blocks=row[4],
                    pools=row[5],
                    apart=row[6],
                    leg=row[1],
                    collected=True,
                )
            )
        return found
