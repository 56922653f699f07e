"""Runs the trials of a study within a limit: each is planned, waits for room, and has a share."""

from __future__ import annotations

import re
import signal
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from memfit.errors import MemfitError, UsageError
from memfit.integrations.optuna.room import Place, Room, Stopped
from memfit.integrations.optuna.trial_process import TrialEnd, TrialProcess, suggested
from memfit.integrations.optuna.verdict import ObjectiveFailed, Verdict, constraints_func, note
from memfit.integrations.planned_space import Asked, Parameter, PlannedSpace
from memfit.integrations.surveys import CHILD, with_values
from memfit.units import format_bytes

Say = Callable[[str], None]
_AHEAD = 4  # trials that wait for room, so that there is a small one to fill a gap
_LOOK_SECONDS = 0.1
_STOPPED = "the study was stopped"


class Within:
    """Call it as Optuna's objective, or let it `optimize` a study: as many at once as fit."""

    def __init__(
        self,
        objective: str,
        words: Sequence[str],
        value: re.Pattern[str],
        *,
        planned: PlannedSpace,
        space: Mapping[str, Parameter],
        room: Room,
        folder: Path,
        say: Say,
    ) -> None:
        self.planned = planned
        self.room = room
        self.folder = folder
        self._objective, self._words, self._value = objective, words, value
        self._space, self._say = space, say
        self.unbroken = self.interrupted = False  # of Ctrl-C
        self._stopped = False
        self._calls = 0
        self._lock = threading.Lock()
        self._unplanned = ""
        self._met: set[str] = set()  # parameters that no survey has asked for
        _stop_at_ctrl_c(self)

    constraints_func = staticmethod(constraints_func)

    @property
    def limit(self) -> int:
        """Bytes that the study's processes may hold together."""
        return self.room.limit

    def __call__(self, trial: optuna.Trial) -> Any:
        """One trial, as `study.optimize(objective, n_jobs=...)` calls it."""
        with self._lock:
            if not self._calls:
                self._stopped = False
            self._calls += 1
        thread = _Thread(self, trial)
        try:
            while not thread.over.wait(_LOOK_SECONDS):
                pass  # so that Ctrl-C comes through
        except BaseException:
            self.stop()
            raise
        finally:
            thread.join()
            with self._lock:
                self._calls -= 1
        if thread.error is not None:
            raise thread.error
        return thread.value

    def ask(self, **params: Any) -> Asked:
        """What a trial with these parameters takes by plan: microseconds once it is planned."""
        if not self.planned.surveys:
            self.planned.prepare(self.room.usable)
        return self.planned.ask(params)

    def stop(self) -> None:
        """End all trials that run, soon, and let none begin."""
        self._stopped = True

    # -- one trial -------------------------------------------------------------------------------

    def _trial(self, trial: optuna.Trial) -> Any:
        """Plan it, wait for room, run it, and say how it went."""
        self._prepare()
        while (parameter := self._next(trial.params)) is not None:
            given = {"choices": list(parameter.choices)} if parameter.choices else _range(parameter)
            suggested(trial, parameter.name, parameter.kind, **given)
        while True:
            place = self._enter(trial, self._asked(trial.params))
            try:
                end, met = self._run(trial, place.share or self.room.usable)
            finally:
                self.room.leave(place)
            if not met or self._stopped:
                return self._judged(trial, end)
            self._met |= met
            self._learned(trial.params, anew=True)

    def _prepare(self) -> None:
        if self._unplanned or self.planned.surveys:
            return
        try:
            self.planned.prepare(self.room.usable)
        except UsageError:
            raise
        except MemfitError as error:
            self._unplanned = str(error).replace(CHILD, self._objective)
            self._say(f"no trial can be planned, and each runs alone: {self._unplanned}")

    def _next(self, params: Mapping[str, Any]) -> Parameter | None:
        """The next parameter that the objective will ask for, as far as that is known."""
        if self._space or self._unplanned:
            return next((p for name, p in self._space.items() if name not in params), None)
        try:
            return self.planned.next_parameter(params)
        except KeyError:
            return self.planned.next_parameter(params) if self._learned(params) else None

    def _asked(self, params: Mapping[str, Any]) -> Asked | None:
        """The plan of a trial; None where it cannot be planned."""
        if self._unplanned or not (self.planned.knows(params) or self._learned(params)):
            return None
        return self.planned.ask(params)

    def _learned(self, params: Mapping[str, Any], *, anew: bool = False) -> bool:
        """Survey a configuration in a share of its own; whether that could be done."""
        place = self.room.enter(self.planned.planner_bytes, self._is_over, trial=False)
        try:
            self.planned.learn(params, anew=anew)
        except MemfitError as error:
            self._say(f"{_shown(params)} cannot be planned, and runs alone: {error}")
            return False
        finally:
            self.room.leave(place)
        return True

    def _enter(self, trial: optuna.Trial, asked: Asked | None) -> Place:
        """Note what was planned, and wait for room; a trial that cannot fit is pruned."""
        limit, usable = self.room.limit, self.room.usable
        note(trial, limit_bytes=limit)
        if asked is None:
            note(trial, verdict=Verdict.NOT_PLANNED)
            return self.room.enter(None, self._is_over)
        note(trial, plan=asked.facts)
        if asked.lower_bytes > usable:
            row = asked.row
            amount = asked.ledger.bytes_of(row)
            note(trial, row=row.name, row_bytes=amount, row_formula=str(row.size))
            reason = (
                f"it would need {format_bytes(asked.peak_bytes)}, and "
                f"{format_bytes(max(0, usable))} of the limit of {format_bytes(limit)} is there "
                f"for one trial; its largest row is {row.name}, {format_bytes(amount)}"
            )
            raise self._pruned(trial, Verdict.TOO_LARGE, reason, asked.peak_bytes / limit - 1)
        fits = asked.upper_bytes <= usable
        note(trial, verdict=Verdict.FITS if fits else Verdict.IN_DOUBT)
        return self.room.enter(asked.upper_bytes if fits else None, self._is_over)

    def _run(self, trial: optuna.Trial, share: int) -> tuple[TrialEnd, set[str]]:
        """Run it with its share; the parameters that it has asked for and no survey has.

        If there are any, it was ended to be planned with them.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        name = f"{_file_name(trial.study.study_name)}-{trial.number}"
        recording, printed = self.folder / f"{name}.db", self.folder / f"{name}.txt"
        met = set[str]()

        def noted(name: str, kind: str) -> None:
            known = self._unplanned or self._space or name in self._met
            if kind != "float" and not known:
                met.add(name)
                process.control.end(f"it is planned anew, with {name}")

        process = TrialProcess(
            trial,
            share=share,
            recording=recording,
            printed=printed,
            noted=noted,
            stopped=self._is_over,
        )
        note(trial, share_bytes=share, recording=str(recording), output=str(printed))
        if self._stopped:
            raise Stopped
        self._say(f"trial {trial.number} begins with {format_bytes(share)}: {_shown(trial.params)}")
        if self._objective:
            return process.objective(self._objective), met
        words = [with_values(word, {"share": share, **trial.params}) for word in self._words]
        return process.command(words, self._value), met

    # -- how it went -----------------------------------------------------------------------------

    def _judged(self, trial: optuna.Trial, end: TrialEnd) -> Any:
        """The value of a trial, or why there is none."""
        if self._stopped:
            raise Stopped
        note(trial, peak_bytes=end.peak_bytes)
        over = end.peak_bytes / self.room.limit - 1
        if end.over_share:
            raise self._pruned(trial, Verdict.OVER_SHARE, end.over_share, over)
        if end.memory:
            raise self._pruned(trial, Verdict.OUT_OF_MEMORY, end.memory, over)
        self._constrain(trial, over)
        if end.pruned is not None:
            note(trial, reason=end.pruned)
            raise optuna.TrialPruned(end.pruned)
        if end.failed or end.value is None:
            reason = end.failed or "it ended without a value"
            note(trial, reason=reason)
            raise ObjectiveFailed(f"trial {trial.number} failed: {reason}", output=end.told)
        if end.files:
            self.room.note_files(end.files)
        self._say(
            f"trial {trial.number} ended: {end.value}, {format_bytes(end.peak_bytes)} at most"
        )
        return end.value

    def _pruned(
        self, trial: optuna.Trial, verdict: Verdict, reason: str, over: float
    ) -> optuna.TrialPruned:
        """What to raise for a trial that does not run on for want of memory."""
        note(trial, verdict=verdict, reason=reason)
        self._constrain(trial, over)
        self._say(f"trial {trial.number} pruned: {reason}")
        return optuna.TrialPruned(reason)

    def _constrain(self, trial: optuna.Trial, over: float) -> None:
        note(trial, over_limit=over)
        if hasattr(trial, "set_constraint"):  # since Optuna 5
            trial.set_constraint("memory", over)

    # -- a whole study ---------------------------------------------------------------------------

    def optimize(
        self,
        study: optuna.Study,
        n_trials: int | None = None,
        timeout: float | None = None,
        *,
        catch: tuple[type[Exception], ...] = (),
        callbacks: Sequence[Callable[[optuna.Study, FrozenTrial], None]] = (),
    ) -> None:
        """Run trials side by side, as many as fit, as `study.optimize` does one after another.

        A failed objective ends the study, unless it is of `catch`; memory never does. Ctrl-C, or
        the end of the time, ends all that run.
        """
        self._stopped = False
        until = None if timeout is None else time.monotonic() + timeout
        alive: list[_Thread] = []
        asked = 0
        try:
            self._prepare()
            while True:
                self._stopped |= until is not None and time.monotonic() > until
                for thread in [thread for thread in alive if thread.over.is_set()]:
                    with self._unbroken():
                        alive.remove(thread)
                        self._tell(study, thread, catch, callbacks)
                if not alive and (self._stopped or asked == n_trials):
                    return
                waiting = len(alive) - len(self.room.running)
                if waiting < _AHEAD and asked != n_trials and not self._stopped:
                    with self._unbroken():
                        alive.append(_Thread(self, study.ask()))
                        asked += 1
                else:
                    time.sleep(_LOOK_SECONDS)
        finally:
            self.stop()
            for thread in alive:
                thread.join()
                self._tell(study, thread, (Exception,), ())

    @contextmanager
    def _unbroken(self) -> Iterator[None]:
        """Ctrl-C waits until this is done: the study must not have a trial that nobody knows."""
        self.unbroken = True
        try:
            yield
        finally:
            self.unbroken = False
            if self.interrupted:
                self.interrupted = False
                raise KeyboardInterrupt

    def _tell(
        self,
        study: optuna.Study,
        thread: _Thread,
        catch: tuple[type[Exception], ...],
        callbacks: Sequence[Callable[[optuna.Study, FrozenTrial], None]],
    ) -> None:
        """Tell the study how a trial has ended."""
        error = thread.error
        if error is None:
            told = study.tell(thread.trial, thread.value)
        else:
            pruned = isinstance(error, optuna.TrialPruned)
            told = study.tell(thread.trial, state=TrialState.PRUNED if pruned else TrialState.FAIL)
        for callback in callbacks:
            callback(study, told)
        if error is None or isinstance(error, optuna.TrialPruned | Stopped):
            return
        self._say(str(error))
        if not isinstance(error, catch):
            raise error

    def _is_over(self) -> bool:
        return self._stopped


class _Thread:
    """A trial that waits or runs in a thread of its own."""

    def __init__(self, study: Within, trial: optuna.Trial) -> None:
        self.trial = trial
        self.value: Any = None
        self.error: BaseException | None = None
        self.over = threading.Event()
        self._study = study
        self._thread = threading.Thread(target=self._run, name=f"trial {trial.number}")
        self._thread.start()

    def join(self) -> None:
        self._thread.join()

    def _run(self) -> None:
        try:
            self.value = self._study._trial(self.trial)
        except BaseException as error:  # noqa: BLE001 - told by whoever waits for it
            self.error = error
            if isinstance(error, Stopped):
                note(self.trial, reason=_STOPPED)
        finally:
            self.over.set()


def _stop_at_ctrl_c(study: Within) -> None:
    """Have Ctrl-C end the trials also where Optuna runs them in threads, which it does not reach.

    What was done at Ctrl-C before is done as well.
    """
    before = signal.getsignal(signal.SIGINT)
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        return
    known = weakref.ref(study)

    def interrupted(number: int, frame: FrameType | None) -> None:
        found = known()
        if found is not None:
            found.stop()
            if found.unbroken and not found.interrupted:
                found.interrupted = True
                return
        before(number, frame)

    signal.signal(signal.SIGINT, interrupted)


def _range(parameter: Parameter) -> dict[str, Any]:
    """A range as Optuna's own trial takes it."""
    whole = parameter.kind == "int"
    given = {name: getattr(parameter, name) for name in ("low", "high", "step", "log")}
    return {**given, "step": int(given["step"] or 1)} if whole else given


def _file_name(study: str) -> str:
    return re.sub(r"[^\w.-]", "_", study)[:100]


def _shown(params: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in params.items()) or "no parameters"
