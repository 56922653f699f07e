"""A study that stays within its memory: trials side by side as far as they fit by plan.

Every trial is a process of its own with a share of the limit. A trial whose estimate is beyond the
limit is pruned before it starts; one that comes to hold more than its share is stopped; what
happened is stored on the trial.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import IO, Any

import optuna

from memfit.errors import UsageError
from memfit.systems.trader import estimate
from memfit.systems.trader.estimate import Base
from memfit.systems.trader.settings import Settings
from memfit.tracking.side_by_side import Held, end_with_workers, held, memory_of, together, tree
from memfit.units import format_bytes

# What a study may choose from, up to what the command line allows.
WIDTHS = (32, 64, 128, 256, 384, 512, 768, 1024, 1536, 2048)
BATCHES = (128, 256, 512, 1024, 2048, 4096)
LOOK_SECONDS = 0.02
# Of the limit: kept free, since a look at the processes is never quite up to date.
KEPT_FREE, LEAST_FREE = 0.03, 16 << 20
PROBE_SECONDS = 300.0

Say = Callable[[str], None]


@dataclass(kw_only=True)
class Running:
    """A trial whose process is alive."""

    process: subprocess.Popen[bytes]
    settings: Settings
    share: int
    errors: IO[bytes]
    trial: optuna.Trial | None = None
    peak: Held = field(default_factory=Held)
    worker: int = 0
    answers: list[dict[str, Any]] = field(default_factory=list)
    unread: bytes = b""
    complaint: str = ""

    def last(self, key: str) -> Any:
        """The latest answer that has this key."""
        return next((a[key] for a in reversed(self.answers) if key in a), None)


class OutOfTime(Exception):
    """The study's time is up."""


class Study:
    """Runs trials of a fitted training within a limit."""

    def __init__(
        self,
        settings: Settings,
        *,
        trials: int,
        limit: int,
        side_by_side: int | None = None,
        max_seconds: float | None = None,
        say: Say = lambda text: None,
    ) -> None:
        self.settings = settings
        self.trials = trials
        self.limit = limit
        self.usable = limit - max(int(limit * KEPT_FREE), LEAST_FREE)
        self.side_by_side = side_by_side or trials
        self.say = say
        self.deadline = None if max_seconds is None else time.monotonic() + max_seconds
        self.base = Base(private=0, files=0, worker=0)
        self.running: list[Running] = []
        self.most_side_by_side = 0
        self.peak = 0
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.study = optuna.create_study(
            direction="maximize",
            sampler=optuna.samplers.TPESampler(seed=settings.seed),
            pruner=optuna.pruners.NopPruner(),
        )

    # -- the whole -----------------------------------------------------------------------------

    def run(self) -> optuna.Study:
        """All trials; none is left running, however this ends."""
        try:
            self.base = self.measure_base()
            self._all_trials()
        except OutOfTime:
            for running in list(self.running):
                self._stop(running, "the study's time was up (--max-seconds)")
        finally:
            for running in list(self.running):
                self._drop(running)
        return self.study

    def _all_trials(self) -> None:
        asked, waiting = 0, None
        while asked < self.trials or self.running or waiting:
            if waiting is None and asked < self.trials:
                waiting = self._ask()
                asked += 1
            if waiting is not None:
                trial, settings, share = waiting
                if share > self.room(alone=True):
                    self._prune(trial, self._too_large(share))
                    waiting = None
                    continue
                if share <= self.room() and len(self.running) < self.side_by_side:
                    self._start(settings, share, trial)
                    waiting = None
                    continue
            self._look()

    def room(self, *, alone: bool = False) -> int:
        """What is left of the limit for one more trial, by plan."""
        own = held([os.getpid()])
        given = 0 if alone else sum(running.share for running in self.running)
        files = max(self.base.files, own.files)
        return self.usable - own.private - files - given

    def _too_large(self, share: int) -> str:
        return (
            f"it would need {format_bytes(share)}, and {format_bytes(self.room(alone=True))} of "
            f"the limit of {format_bytes(self.limit)} is there for one trial"
        )

    # -- what a trial takes --------------------------------------------------------------------

    def measure_base(self) -> Base:
        """Run the smallest trial, and see what it takes beside its own arrays."""
        self.say("measuring what a trial takes before it has any size")
        probe = replace(
            self.settings,
            **estimate.PROBE,  # type: ignore[arg-type]
            workers=min(2, self.settings.workers),
            envs=min(8, self.settings.envs),
            never_done=False,
        )
        running = self._start(probe, 0, None)
        until = time.monotonic() + PROBE_SECONDS
        while running in self.running and time.monotonic() < until:
            self._look()
        if self.peak > self.usable:
            raise UsageError(
                f"--limit {format_bytes(self.limit)} is less than the smallest trial takes "
                f"({format_bytes(self.peak)} when it was ended): give more"
            )
        if running in self.running:
            raise UsageError(
                f"the smallest trial did not end in {PROBE_SECONDS:.0f} s: "
                "give a shorter file of prices, or try when the machine is less busy"
            )
        if running.last("score") is None:
            raise UsageError(self._why(running))
        return estimate.base_of(running.peak.private, running.peak.files, running.worker, probe)

    def _ask(self) -> tuple[optuna.Trial, Settings, int]:
        """The next trial's settings, and its share by plan."""
        trial = self.study.ask()
        largest = self.settings
        settings = replace(
            largest,
            width=trial.suggest_categorical("width", _up_to(WIDTHS, largest.width)),
            batch=trial.suggest_categorical("batch", _up_to(BATCHES, largest.batch)),
            threads=trial.suggest_int("threads", 1, largest.threads),
            workers=trial.suggest_int("workers", min(1, largest.workers), largest.workers),
        )
        share = estimate.share_bytes(settings, self.base)
        trial.set_user_attr("estimate_bytes", estimate.private_bytes(settings, self.base))
        trial.set_user_attr("share_bytes", share)
        return trial, settings, share

    # -- one trial -----------------------------------------------------------------------------

    def _start(self, settings: Settings, share: int, trial: optuna.Trial | None) -> Running:
        import tempfile

        errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed where the trial is let go
        environment = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE"}
        process = subprocess.Popen(
            [sys.executable, "-m", "memfit.systems.trader.trial"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
            start_new_session=True,
        )
        running = Running(
            process=process, settings=settings, share=share, errors=errors, trial=trial
        )
        self.running.append(running)
        self.most_side_by_side = max(self.most_side_by_side, len(self.running))
        assert process.stdin is not None and process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        job = {"settings": asdict(settings), "share": share, "parent": os.getpid()}
        process.stdin.write(json.dumps(job).encode() + b"\n")
        process.stdin.flush()
        if trial is not None:
            self.say(
                f"trial {trial.number} begins: {_values(settings)}, "
                f"{format_bytes(share)} of its own, {len(self.running)} side by side"
            )
        return running

    def _look(self) -> None:
        """Look at all processes once; stop what is over, take in what is done."""
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise OutOfTime
        time.sleep(LOOK_SECONDS)
        trees = {
            running.process.pid: [memory_of(pid) for pid in tree(running.process.pid)]
            for running in self.running
        }
        whole = together(
            [memory_of(os.getpid()), *(one for each in trees.values() for one in each)]
        )
        self.peak = max(self.peak, whole.total)
        for running in list(self.running):
            processes = trees[running.process.pid]
            now = together(processes)
            running.peak = Held(
                private=max(running.peak.private, now.private),
                files=max(running.peak.files, now.files),
            )
            running.worker = max([running.worker, *(worker.own for worker in processes[1:])])
            self._read(running)
            if running.share and now.private > running.share:
                self._stop(running, self._over(now.private, running.share))
            elif running.process.poll() is not None:
                self._read(running)
                self._finish(running)
        if whole.total > self.usable and self.running:
            self._stop(
                self.running[-1],
                f"all trials together held {format_bytes(whole.total)} of the limit of "
                f"{format_bytes(self.limit)}, and it was the last to begin",
            )

    def _over(self, held: int, share: int) -> str:
        return (
            f"it held {format_bytes(held)}, more than its share of {format_bytes(share)} of the "
            f"limit of {format_bytes(self.limit)}"
        )

    def _read(self, running: Running) -> None:
        assert running.process.stdout is not None
        while chunk := running.process.stdout.read(65536):
            running.unread += chunk
        *lines, running.unread = running.unread.split(b"\n")
        for line in lines:
            running.answers.append(json.loads(line))
            if "iteration" in running.answers[-1] and running.trial is not None:
                last = running.answers[-1]
                running.trial.report(last["mean_return"], last["iteration"])

    def _finish(self, running: Running) -> None:
        """A trial came to its end by itself."""
        self._drop(running)
        trial = running.trial
        if trial is None:
            return
        self._note(running)
        score = running.last("score")
        if score is not None and running.process.returncode == 0:
            self.study.tell(trial, score)
            self.say(
                f"trial {trial.number} scored {score:+.2f} %, "
                f"held {format_bytes(running.peak.private)} at most"
            )
        elif running.last("refused"):
            held = format_bytes(running.share)
            self._prune(trial, f"it asked for more than its share of {held}, and was refused")
        else:
            trial.set_user_attr("reason", self._why(running))
            self.study.tell(trial, state=optuna.trial.TrialState.FAIL)
            self.say(f"trial {trial.number} failed: {self._why(running)}")

    def _stop(self, running: Running, reason: str) -> None:
        """End a trial, and store why."""
        self._drop(running)
        if running.trial is not None:
            self._note(running)
            self._prune(running.trial, reason)

    def _prune(self, trial: optuna.Trial, reason: str) -> None:
        trial.set_user_attr("reason", reason)
        self.study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        self.say(f"trial {trial.number} pruned: {reason}")

    def _note(self, running: Running) -> None:
        assert running.trial is not None
        running.trial.set_user_attr("peak_bytes", running.peak.private)
        cut = running.last("cut")
        if cut:
            running.trial.set_user_attr(
                "rollout",
                f"{cut} episodes did not say done within {running.settings.max_episode} steps "
                "and were ended",
            )

    def _drop(self, running: Running) -> None:
        """End a process with all its workers, and let go of it."""
        end_with_workers(running.process)
        self.running.remove(running)
        with running.errors as errors:
            errors.seek(0)
            lines = errors.read().decode(errors="replace").strip().splitlines()
        running.complaint = lines[-1] if lines else ""
        for pipe in (running.process.stdin, running.process.stdout):
            if pipe is not None:
                pipe.close()

    def _why(self, running: Running) -> str:
        told = running.last("failed") or running.complaint
        return str(told or f"it ended with code {running.process.returncode}")


def _up_to(choices: tuple[int, ...], most: int) -> list[int]:
    """The choices up to a value, and that value itself."""
    return sorted({*(choice for choice in choices if choice < most), most})


def _values(settings: Settings) -> str:
    return (
        f"width {settings.width}, batch {settings.batch}, threads {settings.threads}, "
        f"workers {settings.workers}"
    )
