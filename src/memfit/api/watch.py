"""`watch`: frames of a live view, of processes or of a recording that grows."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from memfit.analyses.forecast import forecast, verdict
from memfit.analyses.targets import judge as judge_targets
from memfit.analyses.tree_ledger import tree_ledger
from memfit.api.compare import outlook
from memfit.errors import UsageError
from memfit.measure.kernel import limits, proc
from memfit.measure.live import process_tree
from memfit.measure.record.member_series import MemberSeries
from memfit.measure.record.recording_reader import load
from memfit.measure.record.run_above import recording_of, run_above
from memfit.measure.record.sampling import Sampler
from memfit.model import EventKind, Frame, Ledger, Limit, Reading, Targets, Trace, Watched

_ROWS_SHARE = 20  # reading rows takes at most this part of the time
_KEPT = 4000
_TOLD_WITHIN, _LOOK_AGAIN = 5.0, 0.1  # seconds for the end of a run to be in its recording
_NOTES = 3
_SAID = (EventKind.KILLED, EventKind.OUT_OF_MEMORY, EventKind.GROWTH, EventKind.WARNING)
_CUT_SHORT = (EventKind.KILLED, EventKind.OUT_OF_MEMORY, EventKind.TERMINATED)
_LATE = 2.0  # seconds after processes were read, at which the total was


def watch(
    targets: Sequence[str], *, limit: int | None = None, aims: Targets | None = None
) -> Watch:
    """Watch processes by PID, or one recording."""
    wanted = aims or Targets()
    if len(targets) == 1 and not targets[0].isdecimal():
        return _Recorded(Path(targets[0]), limit, wanted)
    pids = []
    for target in targets:
        if not target.isdecimal():
            raise UsageError(
                f"{target!r} is no PID: give PIDs, or one recording made by `memfit run`"
            )
        process_tree.check_readable(int(target))
        pids.append(int(target))
    return _Live(pids or _own_runs(), limit, wanted)


def watch_each(
    targets: Sequence[str], *, limit: int | None = None, aims: Targets | None = None
) -> dict[str, Watch]:
    """Watch several runs, each for itself: processes and recordings, by what they are called."""
    wanted = list(dict.fromkeys(targets)) or [str(pid) for pid in _own_runs()]
    views = {target: watch([target], limit=limit, aims=aims) for target in wanted}
    names = Counter(Path(target).name for target in views)
    short = {target: Path(target).name for target in views}
    return {
        short[target] if names[short[target]] == 1 else target: view
        for target, view in views.items()
    }


def _own_runs() -> list[int]:
    """Commands below a `memfit run`, where nobody says what to watch."""
    found = process_tree.commands_with("memfit", "run")
    pids = [child for pid in found for child in proc.children(pid)]
    if not pids:
        raise UsageError(
            "nothing to watch: give a PID or a recording, or start a command with `memfit run`"
        )
    return pids


class _Live:
    """Process trees that run. Below `memfit run`, what that has recorded so far is known too."""

    def __init__(self, pids: Sequence[int], limit: int | None, targets: Targets) -> None:
        self.pids = list(pids)
        self.targets = targets
        above = run_above(self.pids[0])
        self._recording: Path | None = None  # of all that is watched, if `memfit run` makes one
        run = above.limit if above is not None else None
        self._given = limit
        self.limit = Limit.given(limit) or run or limits.memory_limit(pid=self.pids[0])
        self._samplers = {pid: Sampler(proc.Tree(main=pid)) for pid in self.pids}
        self._started = time.monotonic()
        self._readings: list[Reading] = []
        if above is not None and len(self.pids) == 1 and _is_whole(self.pids[0], above):
            self._started -= time.time() - above.started
            self._readings += above.readings
            self._recording = recording_of(self.pids[0])
        self._series = MemberSeries()
        self._names: dict[int, str] = {}
        self._rows: tuple[tuple[str, int], ...] = ()
        self._rows_at: float | None = None
        self._holders: tuple[tuple[str, int], ...] = ()
        self._next_rows = 0.0
        self._title = " ".join(str(pid) for pid in self.pids)

    def frame(self) -> Frame:
        """A reading, and rows where they are due."""
        alive = [pid for pid in self.pids if process_tree.is_alive(pid)]
        if not alive and (told := self._as_recorded()):
            return told
        if alive and time.monotonic() >= self._next_rows:
            self._read_rows(alive)
        seconds = time.monotonic() - self._started
        samplers = [self._samplers[pid] for pid in alive]
        samples = [sampler.sample(seconds) for sampler in samplers]
        shares = {pid: held for sampler in samplers for pid, held in sampler.shares().items()}
        total = sum(s.bytes for s in samples)
        if total:
            self._readings.append(
                Reading(
                    seconds=seconds,
                    bytes=total,
                    processes=sum(s.processes for s in samples),
                    threads=sum(s.threads for s in samples),
                    filling=sum(s.filling for s in samples),
                    room=sum(s.room for s in samples),
                    files=sum(s.files for s in samples),
                )
            )
            if len(self._readings) > _KEPT:
                del self._readings[: _KEPT // 2 : 2]
            self._series.look(seconds, shares)
        judge = forecast if alive else verdict
        processes = tuple(map(self._process, shares, shares.values()))
        return Frame(
            title=self._title,
            bytes=total,
            limit=self.limit,
            processes=processes,
            rows=self._rows,
            readings=tuple(self._readings),
            forecast=judge(self._readings, self.limit.bytes, self._series.members),
            targets=tuple(judge_targets(self.targets, processes, total)),
            ended=not alive,
            rows_at=self._rows_at,
            holders=self._holders,
        )

    def _as_recorded(self) -> Frame | None:
        """The end as the run itself tells it; None where it does not."""
        until = time.monotonic() + _TOLD_WITHIN
        while self._recording is not None and time.monotonic() < until:
            with suppress(UsageError):
                frame = _Recorded(self._recording, self._given, self.targets).frame()
                if frame.ended:
                    return frame
            time.sleep(_LOOK_AGAIN)
        self._recording = None
        return None

    def _process(self, pid: int, amount: int) -> Watched:
        if pid not in self._names:
            self._names[pid] = proc.command(pid) or f"process {pid}"
        return Watched(
            pid=pid,
            depth=0 if pid in self.pids else 1,
            name=self._names[pid],
            bytes=amount,
            threads=proc.threads(pid),
        )

    def _read_rows(self, alive: Sequence[int]) -> None:
        started = time.thread_time()  # what it costs, however busy the machine is
        views = []
        for pid in alive:
            with suppress(UsageError):  # it has ended meanwhile
                views.append(process_tree.read_tree(pid))
        if views:
            self._title = views[0][0].command or self._title
            self._rows = _rows([tree_ledger(view) for view in views])
            self._rows_at = time.monotonic() - self._started
        if self._recording is not None:
            with suppress(UsageError):
                self._holders = _holders(load(self._recording))
        self._next_rows = time.monotonic() + _ROWS_SHARE * (time.thread_time() - started)


def _is_whole(pid: int, run: Trace) -> bool:
    """Whether a process is the whole of a recorded run: its command, or the keeper of that."""
    return pid in (run.pid, proc.state_and_parent(run.pid)[1])


class _Recorded:
    """A recording, finished or growing."""

    def __init__(self, path: Path, limit: int | None, targets: Targets) -> None:
        self.path = path
        self.given = Limit.given(limit)
        self.targets = targets
        load(path)  # refuse what is none at once

    def frame(self) -> Frame:
        """The file as it is now."""
        trace = load(self.path)
        limit = self.given or trace.limit or limits.memory_limit()
        last = trace.readings[-1] if trace.readings else Reading(seconds=0, bytes=0)
        own = Watched(
            pid=trace.pid,
            depth=0,
            name=" ".join(trace.command),
            bytes=last.bytes,
            threads=last.threads,
        )
        events = (e for e in reversed(trace.events) if e.kind in _SAID)
        said = [f"at {e.seconds:.0f} s: {e.text}" for e in events]
        at = max((m.readings[-1].seconds for m in trace.members), default=last.seconds)
        if last.seconds - at > _LATE:
            said.append(f"processes as they were at {at:.0f} s")
        return Frame(
            title=" ".join(trace.command),
            bytes=last.bytes,
            limit=limit,
            processes=_latest(trace) or (own,),
            rows=_rows([trace.peak_ledger]) if trace.peak_ledger else (),
            readings=trace.readings,
            forecast=outlook(trace, limit),
            targets=tuple(judge_targets(self.targets, [own], last.bytes)),
            ended=trace.exit_code is not None,
            notes=tuple(said[:_NOTES]),
            rows_at=trace.rows_at,
            holders=_holders(trace),
            cut_short=any(event.kind in _CUT_SHORT for event in trace.events),
        )


def _latest(trace: Trace) -> tuple[Watched, ...]:
    """The processes of a recording when they were read last; their threads are not recorded."""
    at = max((m.readings[-1].seconds for m in trace.members), default=0.0)
    return tuple(
        Watched(pid=m.pid, depth=int(m.pid != trace.pid), name=m.name, bytes=m.readings[-1].bytes)
        for m in trace.members
        if m.readings[-1].seconds == at
    )


Watch = _Live | _Recorded


def _holders(trace: Trace) -> tuple[tuple[str, int], ...]:
    """What the run itself told, the largest first."""
    return tuple(sorted(trace.holders.items(), key=lambda held: -held[1]))


def _rows(ledgers: Sequence[Ledger]) -> tuple[tuple[str, int], ...]:
    rows = tuple(component for ledger in ledgers for component in ledger.components)
    return tuple(Ledger(components=rows).row_bytes.items())
