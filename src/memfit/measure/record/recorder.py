"""Records a running tree from outside and, with a limit, keeps it below that."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memfit.errors import UsageError
from memfit.measure.children.process_lifetime import end_tree, signal_all
from memfit.measure.kernel import proc
from memfit.measure.kernel.cgroup import Group, make_group
from memfit.measure.record.recording import Recording
from memfit.measure.record.sampling import Sampler
from memfit.model import Event, EventKind, Forecast, Ledger, Limit, Reading
from memfit.units import format_bytes

_READ_SECONDS = 0.25  # between two readings that are kept
_FASTEST = 4 * 2**30  # bytes a second that a run may grow without passing the guard unseen
_SOONEST = 0.004  # seconds between two looks of the guard
_HARD = 1.05  # times the limit: no more grace
_NET = 1.08  # times the limit: the kernel's own net
_WARN = 0.9  # of the limit
_FORECAST_SECONDS = 5.0
_LEDGER_GROWTH = 1.03  # a new peak worth its rows
_LEDGER_FIRST, _LEDGER_SHARE = 0.3, 0.005  # seconds, and share of the time, that reading rows takes


@dataclass(frozen=True, kw_only=True)
class Tools:
    """What a recorder is given by those who know: rows of a tree, and how it goes on."""

    ledger: Callable[[int], Ledger]
    forecast: Callable[[list[Reading], int | None], Forecast]
    say: Callable[[str], None]
    live: Callable[[Reading, Forecast | None], None] | None = None


class Recorder:
    """Looks at a tree from its start to its end."""

    def __init__(
        self,
        recording: Recording,
        command: Sequence[str],
        limit: Limit | None,
        tools: Tools,
        *,
        grace: float = 10.0,
    ) -> None:
        self.command = tuple(command)
        self.recording = recording
        self.limit = limit
        self.tools = tools
        self.grace = grace
        self.readings: list[Reading] = []
        self.peak = 0
        self.forecast: Forecast | None = None
        self._ended_by_us = ""
        self._terminated = 0.0
        self._group: Group | None = None
        self._oom_before = _oom_kills()
        self._next_read = self._next_forecast = self._ledger_seconds = 0.0
        self._ledger_bytes = 0
        self._warned = False

    def begin(self, pid: int) -> None:
        """Start with a process that has just been started."""
        self.pid = pid
        self.started = time.monotonic()
        self._sampler = Sampler(pid)
        self.recording.about(command=list(self.command), pid=pid, started=time.time())
        if self.limit is not None:
            self.recording.about(limit_bytes=self.limit.bytes, limit_source=self.limit.source)
            self._group = make_group(int(self.limit.bytes * _NET))
            if self._group is not None and not self._group.add(pid):
                self._group.remove()
                self._group = None
        self._event(EventKind.START, f"process {pid} started")

    def look(self) -> float:
        """Read once, and say when to look again."""
        if self.limit is not None:
            self._guard(self.limit)
        if self.seconds >= self._next_read:
            self._read()
            self._next_read = self.seconds + _READ_SECONDS
        wait = max(_SOONEST, self._next_read - self.seconds)
        if self.limit is None:
            return wait
        room = max(0, self.limit.bytes - self._sampler.quick_bytes())
        return max(_SOONEST, min(wait, room / _FASTEST))

    def end(self, code: int) -> None:
        """The command has ended: say how."""
        if self._ended_by_us:
            self._event(EventKind.KILLED, self._ended_by_us, self.peak)
        elif code == 128 + signal.SIGKILL and self._killed_by_kernel():
            text = f"killed by the kernel for want of memory, at {format_bytes(self.peak)}"
            self._event(EventKind.OUT_OF_MEMORY, text, self.peak)
            self.tools.say(text)
        self._event(EventKind.END, f"ended with exit code {code}", self.peak)
        self.recording.about(exit_code=code, seconds=self.seconds)
        if self._group is not None:
            self._group.remove()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    def _read(self) -> None:
        reading = self._sampler.sample(round(self.seconds, 3), self.recording.step())
        if not reading.bytes:
            return
        self.readings.append(reading)
        if len(self.readings) > 20_000:  # a forecast needs no more
            del self.readings[: len(self.readings) // 2 : 2]
        self.recording.reading(reading)
        self.peak = max(self.peak, reading.bytes)
        self._rows_of_peak(reading.bytes)
        if self.seconds >= self._next_forecast:
            limit = None if self.limit is None else self.limit.bytes
            self.forecast = self.tools.forecast(self.readings, limit)
            self._next_forecast = self.seconds + _FORECAST_SECONDS
            self._warn(reading.bytes)
        if self.tools.live is not None:
            self.tools.live(reading, self.forecast)

    def _rows_of_peak(self, amount: int) -> None:
        spent = self._ledger_seconds > _LEDGER_FIRST + _LEDGER_SHARE * self.seconds
        if spent or amount < _LEDGER_GROWTH * self._ledger_bytes:
            return
        started = time.thread_time()
        with contextlib.suppress(UsageError):  # it has ended meanwhile
            self.recording.ledger(self.seconds, self.tools.ledger(self.pid))
            self._event(EventKind.PEAK, f"a new peak: {format_bytes(amount)}", amount)
            self._ledger_bytes = amount
        self._ledger_seconds += time.thread_time() - started

    def _warn(self, amount: int) -> None:
        if self.limit is None or self._warned:
            return
        found = self.forecast
        reached = None if found is None else found.reaches_limit_at
        if amount < _WARN * self.limit.bytes and reached is None:
            return
        text = f"{format_bytes(amount)} of {format_bytes(self.limit.bytes)}"
        if found is not None and reached is not None:
            left = max(0.0, reached - self.seconds)
            text += f", {found.growth.value}: the limit is reached in about {left:.0f} s"
        self._warned = True
        self._event(EventKind.WARNING, text, amount)
        self.tools.say(f"warning: {text}")

    def _guard(self, limit: Limit) -> None:
        """SIGTERM at the limit, SIGKILL soon after it or where the run goes on growing."""
        amount = self._sampler.quick_bytes()
        if amount <= limit.bytes and not self._terminated:
            return
        self.peak = max(self.peak, amount)
        if not self._terminated:
            self._terminate(amount, limit)
        late = time.monotonic() - self._terminated > self.grace
        if amount > _HARD * limit.bytes or late:
            end_tree(self.pid)

    def _terminate(self, amount: int, limit: Limit) -> None:
        """Ask it to end. It is held still while its rows are kept, so that it does not grow."""
        members = [self.pid, *proc.descendants(self.pid)]
        signal_all(members, signal.SIGSTOP)
        text = f"over the limit: {format_bytes(amount)} of {format_bytes(limit.bytes)}"
        self._ended_by_us = f"ended by memfit, {text}"
        self._event(EventKind.TERMINATED, f"{text}; SIGTERM sent", amount)
        self.recording.reading(Reading(seconds=round(self.seconds, 3), bytes=amount))
        with contextlib.suppress(UsageError):
            self.recording.ledger(self.seconds, self.tools.ledger(self.pid))
        self.tools.say(f"{text}: asking it to end")
        signal_all([self.pid], signal.SIGTERM)
        signal_all(members, signal.SIGCONT)
        self._terminated = time.monotonic()

    def _killed_by_kernel(self) -> bool:
        in_group = self._group is not None and self._group.killed() > 0
        return in_group or _oom_kills() > self._oom_before

    def _event(self, kind: EventKind, text: str, amount: int = 0) -> None:
        self.recording.event(
            Event(seconds=round(self.seconds, 3), kind=kind, text=text, bytes=amount)
        )


def _oom_kills() -> int:
    """How many processes this machine's kernel has ended for want of memory so far."""
    return proc.figure("/proc/vmstat", "oom_kill ") or 0
