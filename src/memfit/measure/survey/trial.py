"""A trial: a training loop runs on as it is while its phases are told apart and measured.

It is told what the loop does: an env was stepped, an optimizer has updated, something is saved. It
ends when two whole cycles of collecting and updating were seen and the peak has stopped growing.
Where a script has nothing that updates, turns of its own loop are its cycles; where one compiled
program is all of the training, that has no cycles, and its memory alone is watched. What the
script does every so often, such as evaluating, is brought forward once before the end.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from memfit.measure.kernel import proc
from memfit.measure.kernel.quiet_thread import quiet_thread
from memfit.measure.kernel.run_clock import RunClock
from memfit.measure.survey.malloc import Malloc
from memfit.measure.survey.phase_peaks import PhasePeaks
from memfit.model.trial import TrialEnd, TrialReading

# A reading takes some microseconds, an env step perhaps no more.
_BETWEEN_READINGS = 0.002
_WATCH_SECONDS = 0.03
_ASK_SECONDS = 0.5
_ALIVE_SECONDS = 1.0
_CYCLES = 2
_RISE, _RISE_SHARE = 2**20, 0.003  # a peak that rises by less has stopped growing
# Short cycles are watched for at least so long, and so many updates; for at most so long after
# the second where they keep growing, as a replay that is filled does.
_STEADY_SECONDS, _STEADY_UPDATES, _GROWING_SECONDS = 2.0, 16, 5.0
_WORKED_SECONDS = 4.0  # of all processors, in which a compiled program has filled its memory
_LEAST_UPDATES = 8  # blocks find their places in malloc's heap only after a few
_LEAST_STEPS = 100  # that a script without updates steps its env, if it trains
# That what comes seldom is waited for, and watched; so many times as long where others compute.
_SELDOM_SECONDS, _LONGER = 5.0, 3
_NO_TURN_SECONDS = 20.0  # that such a script is watched for if it has no loop to tell its cycles

Look = Callable[[str, bool], None]
End = Callable[[TrialReading], object]


class Trial:
    """Measures a loop; `look` is called where arrays of a phase are held, `end` once at the end.

    `look` is told whether that is the last look. While a library's training is `owned` by the
    script, the trial does not end before its time: that may be what is to be planned. `turned`
    says whether the script's outermost loop has gone on since it was asked last, None where there
    is none over elements; `in_a_loop` whether the script is in any. `memory`
    is the most that it may take, `seconds` for how long it goes on once it has updated, without
    what it waited for a processor, and `latest` with that; `alive` is called now and then. Of a
    `short` one, one cycle will do.
    """

    def __init__(
        self,
        *,
        look: Look,
        end: End,
        owned: Callable[[], bool],
        turned: Callable[[], bool | None],
        in_a_loop: Callable[[], bool],
        memory: int,
        seconds: float,
        latest: float = 0.0,
        started: float,
        alive: Callable[[], None],
        short: bool = False,
    ) -> None:
        self.look = look
        self.end = end
        self.owned = owned
        self.turned = turned
        self.in_a_loop = in_a_loop
        self.alive = alive
        self.short = short
        self.memory = memory
        self.clock = RunClock()
        self.started = started
        self.deadline = started + seconds
        self.latest = started + (latest or seconds)
        self.own = os.getpid()
        self.peaks = PhasePeaks()
        self.malloc = Malloc()
        self.lock = threading.RLock()
        self.over = False
        self.phase = "build"
        self.updates = self.cycles = self.env_steps = self.in_update = self.usual = 0
        self.built = self.peaks.now()
        self.peaks.close("build")
        self.read = self.risen = self.begun = self.clock()
        self.first = self.second = 0.0  # when the first update, and the second cycle, were done
        self.high = self.risen_updates = 0
        self.first_busy = self.risen_busy = time.process_time()
        self.asked = self.told = 0.0
        self.first_update = self.at_once = 0
        self.looked = False
        self.seldom: dict[str, bool] = {}  # by its place in the program, whether it was seen
        self.enough = self.enough_busy = 0.0  # when all else was seen
        self.brought = 0
        self.turns = 0
        self.bare = self.turns_over = False  # nothing that could update is known; it has a loop
        self.running: Callable[[], bool] | None = None
        self.delegates = False  # it has started processes, and does nothing itself so far
        self.waited: Callable[[], bool] | None = None  # for one of these
        self.learned_from: set[int] = set()  # the envs that were stepped before the first update
        quiet_thread(self._watch, "memfit trial")

    # -- what the loop does ------------------------------------------------------------------------

    def stepped(self, env: object, steps: int) -> None:
        """An env was stepped."""
        with self.lock:
            if self.over:
                return
            self._begins_itself()
            self.env_steps += steps
            self.at_once = steps
            if not self.updates:
                self.learned_from.add(id(env))
            phase = "rollout" if id(env) in self.learned_from else "evaluate"
            if self.phase == "update":
                self._close("update", phase)
                self._cycle()
            elif self.phase != phase:
                self._close(self.phase if self.phase != "build" else "rollout", phase)
            elif self.clock() > self.read + _BETWEEN_READINGS:
                self._close(phase, phase)
            if self._done():
                self._finish(TrialEnd.SEEN)

    def goes_on(self) -> None:
        """The script does something, and has nothing that could update."""
        with self.lock:
            if self.over:
                return
            turned = self.turned()
            self.bare, self.turns_over = True, turned is not None
            if turned:
                self.turns += 1
                self._close("rollout", "rollout")
                if self.turns > 1 and not self.looked:  # the script may end before the trial does
                    self.looked = True
                    self._look("rollout")
            if self._done():
                self._finish(TrialEnd.SEEN)

    def started_process(self) -> None:
        """The script's own processes give it something: they may do what it is for."""
        with self.lock:
            self.delegates = not (self.updates or self.env_steps)

    def _begins_itself(self) -> None:
        """The script steps an env or updates: its processes are there by now."""
        if self.delegates:
            self.delegates, self.built = False, self.peaks.now()

    def waits_for(self, running: Callable[[], bool]) -> None:
        """The script does nothing until such a process ends."""
        with self.lock:
            if not self.over and not self.updates and not self.env_steps:
                self._close(self.phase, "update")
                self.delegates = True
                self.first_busy, self.waited = self._busy(), running

    def compiled(self) -> None:
        """A program has been compiled, which takes memory of its own for a while."""
        with self.lock:
            if not self.over:
                self._close("build", self.phase)

    def works_on(self, running: Callable[[], bool]) -> None:
        """The last update is of a compiled program: outside of loops, it is the whole training."""
        with self.lock:
            if not self.over and not self.in_a_loop():
                self.running = running

    def updated(self) -> None:
        """An optimizer has made a step."""
        with self.lock:
            if self.over:
                return
            self._begins_itself()
            self.running = None
            self.updates += 1
            self.in_update = self.in_update + 1 if self.phase == "update" else 1
            if self.phase != "update" or self.clock() > self.read + _BETWEEN_READINGS:
                self._close("update", "update")
            if not self.first:
                self.first, self.first_update = self.clock(), self.env_steps
                self.first_busy = time.process_time()
            alone = not self.env_steps
            if (
                not self.looked
                and (self.short or self.cycles)
                and self.in_update >= min(2, self.usual)
            ):
                self.looked = True
                self._look("update")
            if alone and self._done():
                self._finish(TrialEnd.SEEN)

    def due(self, place: str, *, now: bool) -> bool:
        """What comes every so often: brought forward once, if the trial would end without it."""
        with self.lock:
            if self.over or self.short or not self.updates:
                return now
            bring = not now and not self.seldom.get(place) and self._is_late()
            self.seldom[place] = self.seldom.get(place, False) or now or bring
            self.brought += bring
            return now or bring

    def _is_late(self) -> bool:
        """Whether the trial is about to end: all was seen, or is once this update is over."""
        last = self.cycles == _CYCLES - 1 and self.phase == "update"
        whole = self.in_update >= self.usual and self.updates >= _LEAST_UPDATES
        return self._seen_enough() or (last and whole)

    def saving(self) -> None:
        """Something begins to be written."""
        with self.lock:
            if not self.over:
                self._close(self.phase, self.phase)

    def saved(self) -> None:
        """It has been."""
        with self.lock:
            if not self.over and self.updates:
                self._close("save", self.phase)

    def dismiss(self) -> None:
        """A library that knows its training takes over."""
        with self.lock:
            self.over = True

    def ended(self, end: TrialEnd = TrialEnd.WHOLE) -> None:
        """The script has come to its end."""
        with self.lock:
            if not self.over and self.trains:
                self._close(self.phase, self.phase)
                self._finish(end)

    @property
    def trains(self) -> bool:
        """Whether it has updated, or goes on as a training does that has nothing that updates."""
        stepped = self.env_steps >= _LEAST_STEPS or (not self.env_steps and self.turns >= _CYCLES)
        return bool(self.updates or (self.bare and stepped) or self._is_elsewhere)

    @property
    def _is_elsewhere(self) -> bool:
        """Whether processes that the script has started may train, and it does nothing itself."""
        return self.delegates and not self.updates and not self.env_steps

    # -- meanwhile -----------------------------------------------------------------------------

    def _close(self, phase: str, then: str) -> None:
        self.peaks.close(phase)
        self.phase, self.read = then, self.clock()
        if self.read > self.told + _ALIVE_SECONDS:
            self.told = self.read
            self.alive()
        if self.peaks.highest > self.high + max(_RISE, int(_RISE_SHARE * self.high)):
            self.high, self.risen, self.risen_updates = self.peaks.highest, self.read, self.updates
            self.risen_busy = self._busy()

    def _cycle(self) -> None:
        self.usual = self.in_update
        self.cycles += 1
        if self.cycles == _CYCLES:
            self.second = self.read

    def _look(self, moment: str) -> None:
        self.look(moment, False)
        self.read = self.clock()

    def _seen_enough(self) -> bool:
        now = self.clock()
        if self.short and (self.cycles or (not self.env_steps and self.updates >= _CYCLES)):
            return True
        if not self.updates:
            return self._turned_enough(now)
        if self.env_steps and self.cycles < _CYCLES:
            return False
        if now > (self.second or self.first) + _GROWING_SECONDS:
            return True
        steady = self.risen_updates + min(_STEADY_UPDATES, self.risen_updates)
        if self.updates < max(_LEAST_UPDATES, steady):
            return False
        return now - self.risen > max(_STEADY_SECONDS, (now - self.first) / 2)

    def _turned_enough(self, now: float) -> bool:
        """The same where nothing updates: the peak has not risen for half of the time."""
        since = now - self.begun
        if not self.trains or (self.turns_over and self.turns <= _CYCLES):
            return False
        if not self.turns_over and since < _NO_TURN_SECONDS:
            return False
        return now - self.risen > max(_STEADY_SECONDS, since / 2)

    def _worked_enough(self) -> bool:
        """Whether a program or processes that are the whole training have filled their memory."""
        running, each = self.running, 1
        if self._is_elsewhere:
            running, each = self.waited, len(proc.descendants(self.own))
        if running is None or not running():
            return False
        self._close("update", "update")
        # Of the time that it really worked: others may have had the processors meanwhile.
        busy = self._busy()
        worked = busy - self.risen_busy
        return worked > max(_WORKED_SECONDS * each, (busy - self.first_busy) / 2)

    def _busy(self) -> float:
        """Seconds of all processors so far, with those of the script's processes if these work."""
        others = proc.descendants(self.own) if self.delegates else ()
        return time.process_time() + sum(map(proc.busy_seconds, others))

    def _done(self) -> bool:
        if not self._seen_enough() or self.clock() < self.asked:
            return False
        if self._waits():
            return False
        self.asked = self.clock() + _ASK_SECONDS
        return not self.owned()

    def _waits(self) -> bool:
        """Whether something that comes seldom is yet to be brought forward, or is under way."""
        if not self.enough:
            self.enough, self.enough_busy = self.clock(), time.process_time()
        waits = self.phase == "evaluate" or not all(self.seldom.values())
        since, worked = self.clock() - self.enough, time.process_time() - self.enough_busy
        return waits and not self.short and min(since / _LONGER, worked) < _SELDOM_SECONDS

    def _finish(self, end: TrialEnd) -> None:
        self.over = True
        if self._is_elsewhere:
            self.built = self.peaks.now()
        now, free, files = self.peaks.now(), self.malloc.free_bytes(), proc.mapped(self.own)
        self.look("update" if not self.env_steps or self.phase == "update" else "rollout", True)
        self.end(replace(self.reading(end), now=now, free=free, files=files))

    def reading(self, end: TrialEnd) -> TrialReading:
        """What was seen so far."""
        return TrialReading(
            updates=self.updates,
            cycles=self.cycles or self.turns,
            env_steps=self.env_steps,
            seconds=time.perf_counter() - self.started,
            ended=end,
            peaks=dict(self.peaks.bytes),
            built=self.built,
            first_update=self.first_update,
            whole=self.running is not None and self.running(),
            elsewhere=self._is_elsewhere,
            brought=self.brought,
        )

    def _watch(self) -> None:
        while not self.over and os.getpid() == self.own:
            time.sleep(_WATCH_SECONDS)
            self.clock.refresh()
            with self.lock:
                if not self.over:
                    self.peaks.watch()
                    self._end_by_itself()

    def _end_by_itself(self) -> None:
        """End where that is not for the loop to say."""
        over = self.clock() > self.deadline or time.perf_counter() > self.latest
        slow = self._is_elsewhere and time.perf_counter() < self.latest  # it may yet begin itself
        late = self.trains and over and not slow
        if late or proc.resident(self.own) + self.peaks.beside > self.memory:
            self._close(self.phase, self.phase)
            self._finish(TrialEnd.TIME if late else TrialEnd.MEMORY)
        elif self._worked_enough():
            self._finish(TrialEnd.SEEN)
