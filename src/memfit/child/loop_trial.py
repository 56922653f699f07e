"""Tries a loop that no library owns, in the child: begins, is dismissed, and becomes an answer."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from memfit.analyses.run_length import run_length
from memfit.child.launched_ranks import Started
from memfit.child.loop_arrays import looked_at_here, looked_at_in_a_fork
from memfit.child.loop_bounds import loops_of
from memfit.child.loop_lists import Length, lists_of
from memfit.child.outer_loop import OuterLoop, in_a_loop
from memfit.child.script_variables import script_variables
from memfit.libraries import all_libraries
from memfit.libraries.loop.own_files import OwnFiles
from memfit.measure.survey.run_processes import read_others
from memfit.measure.survey.trial import Trial
from memfit.model import OtherProcesses, Readings
from memfit.model.job import Answer, Job, Look, Status
from memfit.model.progress_file import write_progress
from memfit.model.training import Looping, LoopListener
from memfit.model.trial import Progress, RunLength, TrialArrays, TrialEnd, TrialReading

_ROOM = 2**62
_LARGE, _FILLED = 2**20, 0.97  # a buffer may be filling if it is as large, and less of it is there
_LONGER, _ALIKE = 1.3, 0.35  # a list that grows is longer by as much as the run has gone on


class _NeverLearned(LoopListener):
    """Ends a script that is run for what comes after a library's training, and has none."""

    def __init__(self, tell: Callable[[Answer], object]) -> None:
        self.tell = tell

    def stepped(self, env: object, steps: int) -> None:
        return

    def updated(self) -> None:
        self.tell(Answer(status=Status.NEVER_LEARNED))

    def works_on(self, running: Callable[[], bool]) -> None:
        return

    def compiled(self) -> None:
        return

    def goes_on(self) -> None:
        return

    def due(self, place: str, *, now: bool) -> bool:
        return now

    def saving(self) -> None:
        return

    def saved(self) -> None:
        return


def _filled(row: TrialArrays, more: float) -> TrialArrays:
    """A buffer that was filling, as it is when the run has gone on so many times as far."""
    if row.capacity:
        more = min(more, row.capacity / max(1, row.elements))
        return replace(
            row,
            elements=int(row.elements * more),
            bytes=int(row.bytes * more),
            count=int(row.count * more),
            resident=int(row.resident * more),
        )
    if row.bytes < _LARGE or row.resident >= _FILLED * row.bytes:
        return row
    return replace(row, resident=min(row.bytes, int(row.resident * more)))


def _has_grown(before: Length, now: Length, more: float) -> bool:
    """Whether a list is longer by about as much as the run has gone on, or goes to its bound."""
    if not 0 < before.elements < now.elements:
        return False
    longer = now.elements / before.elements
    return bool(now.most) or (more >= _LONGER and abs(longer - more) <= _ALIKE * more)


class LoopTrial:
    """One trial at most; `tell` gets the answer and does not come back."""

    def __init__(self, job: Job, noted: Path, tell: Callable[[Answer], object]) -> None:
        self.job = job
        self.noted = noted
        self.script = os.path.abspath(job.target)  # noqa: PTH100 - as Python names it
        self.tell = tell
        self.started = time.perf_counter()
        self.training: Looping | None = None
        self.trial: Trial | None = None
        self.dismissed = False
        self.main: ModuleType | None = None
        self.held: dict[str, list[TrialArrays]] = {}
        self.last: list[TrialArrays] = []
        self.at_end = False
        self.beside: Started = {}  # processes that were started before the program
        self.others: tuple[OtherProcesses, ...] = ()  # what other processes held at an earlier look
        # Of lists, when the run had come so far.
        self.lengths: tuple[dict[str, Length], int] = {}, 0

    def begin(self, training: Looping) -> None:
        """Let it run on, and measure it meanwhile."""
        if self.dismissed:
            training.dismiss()
            return
        self.training = training
        if self.job.look is not Look.SURVEY or self.job.skip:
            training.listen(_NeverLearned(self.tell))
            return
        self.main = sys.modules.get("__main__")  # which goes when the script has ended
        self.trial = Trial(
            look=self._look,
            end=self._end,
            owned=self._is_owned,
            turned=OuterLoop().turned,
            in_a_loop=in_a_loop,
            memory=self.job.trial_bytes or _ROOM,
            seconds=self.job.trial_seconds,
            latest=self.job.trial_latest,
            started=self.started,
            alive=self._note,
            short=self.job.short,
        )
        training.listen(self.trial)

    def dismiss(self) -> None:
        """A library that knows its training has taken over."""
        self.dismissed = True
        if self.trial is not None:
            self.trial.dismiss()
        if self.training is not None:
            self.training.dismiss()

    def ended(self, *, failed: bool = False) -> Answer | None:
        """Tell what was seen of a script that has ended; nothing where it trained nothing.

        One that `failed` after something was brought forward may not have been ready for it.
        """
        if self.trial is not None and self.trial.trains and not self.trial.over:
            if failed and not self.trial.brought:
                return None
            if self.main is not None:
                sys.modules["__main__"] = self.main
            self.at_end = True
            self.trial.ended(TrialEnd.SEEN if failed else TrialEnd.WHOLE)
        return None

    def progress(self) -> Progress:
        """How far the script came."""
        seconds = time.perf_counter() - self.started
        if self.trial is None:
            return Progress(seconds=seconds)
        steps, updates = self.trial.env_steps, self.trial.updates
        return Progress(env_steps=steps, updates=updates, seconds=seconds)

    def _note(self) -> None:
        """Leave word of how far the script came, for the case that it is ended."""
        write_progress(self.noted, self.progress())

    def _look(self, moment: str, last: bool) -> None:
        variables = self._variables()
        if last:
            found = looked_at_here(variables, self._growing(variables))
        else:
            found = looked_at_in_a_fork(variables)
            self.lengths = lists_of(variables, ()), self._done
            self.others = self._others()
        if self.at_end:
            more = self._done / max(1, self.lengths[1])
            for earlier, rows in self.held.items():
                self.held[earlier] = [_filled(row, more) for row in rows]
        if found:
            self.held[moment] = [*self._gone(moment, found), *found] if self.at_end else found
            self.last = found

    def _gone(self, moment: str, found: list[TrialArrays]) -> list[TrialArrays]:
        """What an earlier look saw and a script at its end no more: variables of functions."""
        there = {row.path for row in found}
        return [row for row in self.held.get(moment, ()) if row.path not in there]

    @property
    def _done(self) -> int:
        """How far the run has come, in env steps, or in updates where it has none."""
        assert self.trial is not None
        return self.trial.env_steps or self.trial.updates

    def _growing(self, variables: list[tuple[str, Any]]) -> dict[str, Length]:
        """Lists that have grown with the run since an earlier look, and their lengths."""
        before, then = self.lengths
        more = self._done / max(1, then)
        if not before:
            return {}
        now = lists_of(variables, OwnFiles(self.job).texts())
        return {
            path: now[path]
            for path, length in before.items()
            if path in now and _has_grown(length, now[path], more)
        }

    def _end(self, reading: TrialReading) -> None:
        assert self.training is not None
        arrays = sum(row.resident for row in self.last if row.mapped)
        files = max(0, reading.files - arrays)
        told = replace(reading, run=self._length(reading), files=files)
        facts = self.training.observed(told, self.held, self._variables())
        known = facts.spec.settings
        asked = {} if self.job.short else self.job.knobs  # a short one may vary what it can
        if any(known.get(name) != value for name, value in asked.items()):
            self.tell(Answer(status=Status.NO_SETTING, settings=tuple(known)))
        readings = Readings(
            stopped=reading.built,
            warm=reading.now,
            unit=1,
            trial=facts.trial,
            others=self._others_until_the_end(),
        )
        self.tell(Answer(status=Status.SURVEYED, spec=facts.spec, readings=readings))

    def _others(self) -> tuple[OtherProcesses, ...]:
        assert self.training is not None
        return read_others((), self.beside, self.training.processes())

    def _others_until_the_end(self) -> tuple[OtherProcesses, ...]:
        """Other processes; where the script is at its end, some may have ended before it."""
        now = self._others()
        there = {group.name for group in now}
        gone = (group for group in self.others if self.at_end and group.name not in there)
        return (*now, *gone)

    def _length(self, reading: TrialReading) -> RunLength | None:
        """When the run ends, from the loops that it is in; one that has ended has told."""
        assert self.trial is not None
        if reading.ended is TrialEnd.WHOLE:
            return RunLength(steps=reading.env_steps, where="the script's end", exact=True)
        frame = sys._current_frames().get(threading.main_thread().ident or 0)
        return run_length(
            loops_of(frame),
            steps=reading.env_steps,
            at_once=self.trial.at_once,
            updating=self.trial.phase == "update",
        )

    def _variables(self) -> list[tuple[str, Any]]:
        """The script's variables, those of the innermost function first."""
        frame = sys._current_frames().get(threading.main_thread().ident or 0)
        main = vars(self.main).items() if self.main is not None else ()
        return [*script_variables(frame, self.script), *list(main)]

    def _is_owned(self) -> bool:
        """Whether the script has a training of a library at hand, which is yet to begin."""
        things = [thing for _, thing in self._variables()]
        return any(library.owns(thing) for library in all_libraries() for thing in things)
