"""Records a running tree from outside and, with a limit, keeps it below that."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from memfit.measure.children.process_lifetime import end_all
from memfit.measure.kernel import proc
from memfit.measure.kernel.cgroup import Group
from memfit.measure.record.growth_warnings import GrowthWarnings, growth_text
from memfit.measure.record.holder_looks import HolderLooks
from memfit.measure.record.limit_guard import LimitGuard
from memfit.measure.record.member_series import MemberSeries
from memfit.measure.record.oom_kills import OomKills
from memfit.measure.record.recording import Recording
from memfit.measure.record.recording_thread import RecordingThread
from memfit.measure.record.sampling import Sampler
from memfit.model import (
    Event,
    EventKind,
    Forecast,
    Ledger,
    Limit,
    Member,
    Reading,
    RunControl,
    Trace,
)
from memfit.units import format_bytes

_T = TypeVar("_T")
_READ_SECONDS = 0.25  # between two readings that are kept
_FASTEST = 4 * 2**30  # bytes a second that a run may grow without passing the guard unseen
_SOONEST = 0.004  # seconds between two looks of the guard
_FORECAST_SECONDS, _FORECAST_SHARE = 5.0, 200  # between two; each takes at most this part of it
_LEDGER_GROWTH = 1.03  # a new peak worth its rows
_LEDGER_FIRST, _LEDGER_SHARE = 0.3, 0.005  # seconds, and share of the time, that reading rows takes
_LEDGER_APART, _LEDGER_TURN = 2.0, 0.04  # seconds, and share of the time, from rows to rows
_LEDGER_LONGEST = 1.0  # seconds that one reading may take beyond that: nothing else is read then
_LEAVING_SECONDS = 0.5  # what ends with the command may take so long after it


Judge = Callable[[Sequence[Reading], int | None, Sequence[Member]], Forecast]


@dataclass(frozen=True, kw_only=True)
class Tools:
    """What a recorder is given by those who know: rows of processes, how a run goes on, or went."""

    ledger: Callable[[Sequence[int]], Ledger]
    forecast: Judge
    verdict: Judge
    say: Callable[[str], None]
    live: Callable[[Reading, Forecast | None], None] | None = None
    looks: HolderLooks | None = None  # at who holds the memory, where nobody minds a process more
    control: RunControl | None = None


class Recorder:
    """Looks at a tree from its start to its end. Whatever fails in it, the tree goes on."""

    def __init__(
        self,
        recording: RecordingThread,
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
        self.events: list[Event] = []
        self.peak = 0
        self.exit_code: int | None = None
        self.forecast: Forecast | None = None
        self._warnings = GrowthWarnings(limit)
        self._members = MemberSeries()
        self._guard: LimitGuard | None = None
        self._peak_ledger: Ledger | None = None
        self._ended_by_us = ""
        self._next_read = self._next_forecast = self._ledger_seconds = 0.0
        self._ledger_each = 0.0  # seconds for a process; the first time is more, for imports
        self._ledger_bytes = 0
        self._rows_at: float | None = None
        self._peak_rows_at: float | None = None
        self._trouble = self._ready = False

    def begin(self, tree: proc.Tree, group: Group | None = None) -> None:
        """Start with a process that has just been started."""
        self.tree, self._group = tree, group
        self.started, self._clock = time.monotonic(), time.time()
        if self.tools.control is not None:
            self.tools.control.pid = tree.main
        self._safely(self._prepare)

    def _prepare(self) -> None:
        tree = self.tree
        self._sampler = Sampler(tree)
        self._oom_kills = OomKills(self._group, tree.main)
        facts: dict[str, Any] = {"command": list(self.command), "pid": tree.main}
        facts |= {"started": self._clock, "cores": len(os.sched_getaffinity(0))}
        if self.limit is not None:
            facts |= {"limit_bytes": self.limit.bytes, "limit_source": self.limit.source}
            self._guard = LimitGuard(
                self._sampler, self.limit.bytes, grace=self.grace, rows=self._last_rows
            )
        self._ready = True
        self.recording.tell(lambda recording: recording.about(**facts))
        self._event(EventKind.START, f"process {tree.main} started")

    def look(self) -> float:
        """Read once, and say when to look again."""
        if self.tools.control is not None and self.tools.control.reason:
            self._end_as_told(self.tools.control.reason)
        if not self._ready:
            self._safely(self._prepare)
        if not self._ready:
            return _READ_SECONDS
        if self._guard is not None:
            self._safely(self._keep_below)
        if self.seconds >= self._next_read:
            self._safely(self._read)
            self._next_read = self.seconds + _READ_SECONDS
        wait = max(_SOONEST, self._next_read - self.seconds)
        if self.limit is None:
            return wait
        bounds = self._safely(self._sampler.bounds)
        held = 0 if bounds is None else bounds.most
        return max(_SOONEST, min(wait, max(0, self.limit.bytes - held) / _FASTEST))

    def end(self, code: int, left: Sequence[int] = ()) -> None:
        """The command has ended: say how, and which processes it has left behind."""
        self.exit_code = code
        self._safely(lambda: self._end(code, left))
        seconds = self.seconds
        self.recording.tell(lambda recording: recording.about(exit_code=code, seconds=seconds))

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    @property
    def trace(self) -> Trace:
        """What was seen, for when no recording has it."""
        return Trace(
            command=self.command,
            pid=self.tree.main,
            started=self._clock,
            limit=self.limit,
            readings=tuple(self.readings),
            events=tuple(self.events),
            peak_ledger=self._peak_ledger,
            rows_at=self._peak_rows_at,
            members=self._members.members,
            exit_code=self.exit_code,
            cut=self.recording.failed,
        )

    def _safely(self, work: Callable[[], _T]) -> _T | None:
        """Do this, or say once what is wrong: the command is not to suffer for it."""
        try:
            return work()
        except Exception as error:  # noqa: BLE001  # whatever it is, the command goes on
            if not self._trouble:
                self._trouble = True
                self._say(f"cannot read the command for a time ({error!r}); it goes on")
            return None

    def _say(self, text: str) -> None:
        with suppress(Exception):  # a caller's own function
            self.tools.say(text)

    def _read(self) -> None:
        reading = self._sampler.sample(round(self.seconds, 3), self.recording.step)
        self._look_for_oom_kills()
        if not reading.bytes:
            return
        self.readings.append(reading)
        if len(self.readings) > 20_000:  # a forecast needs no more
            del self.readings[: len(self.readings) // 2 : 2]
        self.recording.tell(self._keep(reading))
        if held := self._members.look(reading.seconds, self._sampler.held):
            self.recording.tell(lambda recording: recording.members(reading.seconds, held))
        self.peak = max(self.peak, reading.bytes)
        self._read_rows(reading.bytes)
        if self.tools.looks is not None:
            self.tools.looks.look(self.seconds, self._sampler.held, reading.step)
        if self.seconds >= self._next_forecast:
            started = time.thread_time()
            limit = None if self.limit is None else self.limit.bytes
            self.forecast = self.tools.forecast(self.readings, limit, self._members.members)
            self._warn(reading.bytes, self.forecast)
            took = time.thread_time() - started
            self._next_forecast = self.seconds + max(_FORECAST_SECONDS, _FORECAST_SHARE * took)
        if self.tools.live is not None:
            self.tools.live(reading, self.forecast)

    def _keep(self, reading: Reading) -> Callable[[Recording], None]:
        def keep(recording: Recording) -> None:
            recording.reading(reading)
            self.recording.step = recording.step()

        return keep

    def _read_rows(self, amount: int) -> None:
        """Read the rows at a new peak and, with half of the time for it, now and then."""
        members = self._sampler.members
        room = _LEDGER_FIRST + _LEDGER_SHARE * self.seconds - self._ledger_seconds
        takes = self._ledger_each * len(members)
        if room < 0 or takes > max(room, _LEDGER_LONGEST):
            return
        apart = max(_LEDGER_APART, _LEDGER_TURN * self.seconds)
        due = takes <= room / 2 and self.seconds >= (self._rows_at or 0.0) + apart
        if self.limit is not None:  # the guard waits meanwhile
            due = due and takes < (self.limit.bytes - amount) / _FASTEST
        higher = amount >= _LEDGER_GROWTH * self._ledger_bytes
        if not (higher or due):
            return
        started = time.thread_time()
        ledger = self.tools.ledger(members)
        if ledger.components:  # else it has ended meanwhile
            self._keep_rows(ledger, highest=higher)
            # Else there was a higher one whose rows could not be read.
            if higher and amount >= self.peak:
                self._event(EventKind.PEAK, f"a new peak: {format_bytes(amount)}", amount)
            self._ledger_bytes = max(self._ledger_bytes, amount)
        took = time.thread_time() - started
        self._ledger_seconds += took
        self._ledger_each = min(took / len(members), self._ledger_each or took)

    def _keep_rows(self, ledger: Ledger, *, highest: bool = True) -> None:
        seconds = self._rows_at = self.seconds
        if highest:
            self._peak_ledger, self._peak_rows_at = ledger, seconds
        self.recording.tell(lambda recording: recording.ledger(seconds, ledger))

    def _warn(self, amount: int, found: Forecast) -> None:
        if self._ended_by_us:  # there is nothing more to warn of
            return
        if text := self._warnings.text(amount, self.seconds, found):
            text = self._with_what_grew(text)
            self._event(EventKind.WARNING, text, amount)
            self._say(f"warning: {text}")

    def _last_rows(self, members: Sequence[int]) -> Ledger:
        """The rows of a run that is held still, over its limit; and a last look at who holds it."""
        ledger = self.tools.ledger(members)
        if self.tools.looks is not None:
            with suppress(Exception):  # without it, what was seen before is told
                self.tools.looks.look_last(self.seconds, self._sampler.held, self.recording.step)
        return ledger

    def _keep_below(self) -> None:
        """Have the guard act, then tell what it did."""
        assert self._guard is not None
        amount = self._guard.look()
        if not amount:
            return
        self.peak = max(self.peak, amount)
        text = f"over the limit: {format_bytes(amount)} of {format_bytes(self._guard.limit)}"
        self._ended_by_us = f"ended by memfit, {text}"
        self._event(EventKind.TERMINATED, f"{text}; SIGTERM sent", amount)
        reading = Reading(seconds=round(self.seconds, 3), bytes=amount)
        self.readings.append(reading)
        self.recording.tell(self._keep(reading))
        if self._guard.ledger is not None and self._guard.ledger.components:
            self._keep_rows(self._guard.ledger)
        self._say(f"{text}: asking it to end")

    def _end_as_told(self, reason: str) -> None:
        """Its caller wants it to end: nothing that fails here may be in the way."""
        end_all(self.tree.members)
        if not self._ended_by_us:
            self._ended_by_us = f"ended by its caller: {reason}"
            self._event(EventKind.TERMINATED, self._ended_by_us)

    def _end(self, code: int, left: Sequence[int]) -> None:
        if self.tools.looks is not None:
            self.tools.looks.end()
        found = self._safely(lambda: self.tools.verdict(self.readings, None, self._members.members))
        grows = growth_text(found) if found is not None and found.growth.at_one_pace else ""
        if self._ended_by_us:
            text = f"{self._ended_by_us}; {grows}" if grows else self._ended_by_us
            self._event(EventKind.KILLED, self._with_what_grew(text, ended=True), self.peak)
        else:
            if grows and self.tools.looks is not None and (text := self.tools.looks.grown()):
                self._event(EventKind.GROWTH, text, self.peak)
            self._look_for_oom_kills(killed=code == 128 + signal.SIGKILL)
            self._tell_of(left)
        if self._sampler.unconfirmed:
            most = format_bytes(self._sampler.unconfirmed)
            text = f"processes came and went faster than they can be read: up to {most} is possible"
            self._event(EventKind.WARNING, text)
            self._say(text)
        self._event(EventKind.END, f"ended with exit code {code}", self.peak)

    def _look_for_oom_kills(self, *, killed: bool | None = None) -> None:
        text = self._oom_kills.found(self._sampler.members, killed=killed)
        if text:
            text = self._with_what_grew(f"{text}, at {format_bytes(self.peak)}")
            self._event(EventKind.OUT_OF_MEMORY, text, self.peak)
            self._say(text)

    def _tell_of(self, left: Sequence[int]) -> None:
        """Say what goes on without the command, and without memfit."""
        until = self.seconds + _LEAVING_SECONDS
        while (left := [pid for pid in left if proc.resident(pid)]) and self.seconds < until:
            time.sleep(0.02)
        if left:
            one = "one process goes" if len(left) == 1 else f"{len(left)} processes go"
            text = f"{one} on without the command, not recorded or guarded any more: {left}"
            self._event(EventKind.WARNING, text)
            self._say(text)

    def _with_what_grew(self, text: str, *, ended: bool = False) -> str:
        looks = self.tools.looks
        grown = "" if looks is None else looks.grown() or (looks.held_most() if ended else "")
        return f"{text}; {grown}" if grown else text

    def _event(self, kind: EventKind, text: str, amount: int = 0) -> None:
        event = Event(seconds=round(self.seconds, 3), kind=kind, text=text, bytes=amount)
        self.events.append(event)
        self.recording.tell(lambda recording: recording.event(event))
