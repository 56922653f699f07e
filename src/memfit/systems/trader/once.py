"""One training in this process, made to fit or as described; as described also one after another.

The assessment's study runs all its trials in one process: what one trial leaves behind, the next
one begins with.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from dataclasses import replace
from typing import Any

from memfit.dropins.settings import give_back_large_blocks
from memfit.errors import OverLimit
from memfit.systems.program import Progress, device_of, say
from memfit.systems.trader.market import market_for
from memfit.systems.trader.rollout import Collector
from memfit.systems.trader.settings import Settings
from memfit.tracking.guard import Guard, refuse_beyond
from memfit.tracking.side_by_side import held, tree
from memfit.units import format_bytes

# What a forked worker comes to hold of its own: measured, and rounded up.
WORKER = 16 << 20
# What torch loads when the first optimizer is made.
OPTIMIZER = 80 << 20
RESERVED = 64 << 20  # that libraries reserve beside stacks, and do not touch: measured, rounded up


class TimeUp(Exception):
    """The training has had the time that it was given."""


class Watch(Guard):
    """A guard that also counts the steps of a rollout that might not end, and ends it in time."""

    def __init__(self, limit: int, max_seconds: float | None) -> None:
        super().__init__(limit)
        self.max_seconds = max_seconds
        self.started = time.monotonic()
        self.steps = self._first = 0

    def check(self) -> None:
        """Go on, or raise why not."""
        past = time.monotonic() - self.started
        if self.max_seconds is not None and past > self.max_seconds:
            raise TimeUp(f"ended after {past:.0f} s, as --max-seconds asks")
        super().check()

    def step(self) -> None:
        """One step of a rollout that might not end."""
        self.steps += 1
        if self.steps == 1:
            self._first = self._private()
        self.check()

    def new_rollout(self) -> None:
        """Count steps from here."""
        self.steps = 0

    def growth(self) -> str:
        """How many steps the rollout had, and what each of them added."""
        if self.steps < 2:
            return ""
        each = (self._private() - self._first) / self.steps
        return f"; the rollout had {self.steps:,} steps and grew by {each:,.0f} bytes a step"

    def _private(self) -> int:
        return held(tree(os.getpid())).private


def train(settings: Settings, options: argparse.Namespace, limit: int) -> int:
    """Train, print a line an iteration and what it took at the end; the exit code."""
    if not options.as_described:
        return _fitted(settings, options, limit)
    settings = replace(settings, device=device_of(settings.device))
    if options.trials > 1:
        return _one_after_another(settings, options, limit)
    return _described(settings, options, limit)[0]


def _fitted(settings: Settings, options: argparse.Namespace, limit: int) -> int:
    give_back_large_blocks()
    market = market_for(settings)
    collector = Collector(settings, market)  # before torch is loaded
    try:
        from memfit.systems.trader.fitted import Fitted

        settings = replace(settings, device=device_of(settings.device))
        here = held(tree(os.getpid()))
        needed = here.total + collector.buffers.bytes + OPTIMIZER + settings.workers * WORKER
        if needed > limit:
            say(
                f"does not fit: this training would need {format_bytes(needed)} or more, and the "
                f"limit is {format_bytes(limit)}: give a smaller --steps or --workers"
            )
            return 3
        _allow(limit - here.files - collector.buffers.bytes, settings.threads)
        training = Fitted(settings, market, collector, Progress(quiet=options.quiet))
        return _run(training, Watch(limit, options.max_seconds), settings)[0]
    except (MemoryError, RuntimeError, OSError) as error:
        if not _out_of_memory(error):
            raise
        say(f"does not fit: memory was refused beyond the limit of {format_bytes(limit)}")
        return 3
    finally:
        collector.close()


def _allow(share: int, threads: int) -> None:
    """Have the kernel refuse this process what is beyond its share, before it is touched.

    The kernel counts writable memory as it is reserved: the stacks of torch's threads, of which
    there are two pools, and more that libraries reserve and hardly use are allowed on top.
    """
    stack = resource.getrlimit(resource.RLIMIT_STACK)[0]
    if stack == resource.RLIM_INFINITY or stack > 8 << 20:
        stack = 8 << 20
    here = held(tree(os.getpid())).private
    refuse_beyond(max(0, share - here) + 2 * threads * stack + RESERVED)


def _out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory was refused."""
    texts = ("allocate memory", "not enough memory")
    return isinstance(error, MemoryError) or any(text in str(error) for text in texts)


def _described(
    settings: Settings, options: argparse.Namespace, limit: int
) -> tuple[int, float | None]:
    from memfit.systems.trader.described import Described

    market = market_for(settings)
    watch, progress = Watch(limit, options.max_seconds), Progress(quiet=options.quiet)
    try:
        training = Described(settings, market, progress, watch.step, watch.check)
    except BaseException:
        watch.close()
        raise
    return _run(training, watch, settings)


def _run(training: Any, watch: Watch, settings: Settings) -> tuple[int, float | None]:
    """Go through all iterations; the exit code, and the score where there is one."""
    code, done, cut, score = 0, 0, 0, None
    try:
        for result in training.train():
            done, cut = result.number, cut + result.cut
            returned = (
                f"mean return {result.mean_return:+.2f} % of {result.episodes} episodes"
                if result.episodes
                else "no episode ended"
            )
            say(
                f"iteration {done}: {returned}, losses {result.actor_loss:.3f} (actor) "
                f"{result.critic_loss:.3f} (critic), {result.seconds:.1f} s"
            )
            watch.new_rollout()
            watch.check()
        score = training.judge()
        say(f"on held-out prices: mean return {score:+.2f} %")
    except (TimeUp, OverLimit) as ended:
        say(f"{ended}{watch.growth()}")
        code = ended.exit_code if isinstance(ended, OverLimit) else 0
    except KeyboardInterrupt:
        say(f"stopped after {done} of {settings.iterations} iterations")
        code = 130
    finally:
        watch.close()
        training.close()
    if cut:
        say(f"{cut} episodes did not say done within {settings.max_episode} steps: ended")
    say(f"peak {format_bytes(watch.peak_bytes)} with width {settings.width}, {_people(settings)}")
    return code, score


def _people(settings: Settings) -> str:
    return f"{settings.threads} threads, {settings.workers} workers"


def _one_after_another(settings: Settings, options: argparse.Namespace, limit: int) -> int:
    """The assessment's study: every trial in this process, and no plan."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(
        direction="maximize", sampler=optuna.samplers.TPESampler(seed=settings.seed)
    )
    for number in range(options.trials):
        trial = study.ask()
        chosen = replace(
            settings,
            width=trial.suggest_int("width", max(1, settings.width // 3), settings.width),
            batch=trial.suggest_int("batch", max(1, settings.batch // 2), settings.batch),
            threads=trial.suggest_int("threads", max(1, settings.threads // 3), settings.threads),
            workers=trial.suggest_int("workers", max(0, settings.workers - 1), settings.workers),
        )
        say(f"trial {number}: width {chosen.width}, batch {chosen.batch}, {_people(chosen)}")
        code, score = _described(chosen, options, limit)
        if code or score is None:
            return code
        study.tell(trial, score)
    say(f"best: trial {study.best_trial.number} with {study.best_value:+.2f} %")
    return 0
