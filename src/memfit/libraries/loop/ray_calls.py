"""Notices what RLlib and Ray Tune do where the work is done in other processes.

What env runners bring is a rollout; what learners of other processes have done is an update, and so
is what a training under Tune reports.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, Protocol

from memfit.model.reading import ProcessNames
from memfit.model.training import ModuleHook

# Titles and command lines of processes, the name of their row and what they are; the first counts.
PROCESSES = ProcessNames(
    patterns=(
        (r"^ray::\w*EnvRunner", "env_runners", "env runners of RLlib"),
        (r"^ray::\w*(Learner|WrappedExecutable|RayTrainWorker)", "learners", "learners of RLlib"),
        (r"^ray::(IDLE|\w+Agent\b)|/ray/", "ray", "Ray's own processes"),
        (r"^ray::", "actors", "actors and tasks, as trainings under Tune are"),
    ),
    shared=("object_store", "Ray's object store and other shared memory, once"),
)
_SAMPLED = "num_env_steps_sampled_lifetime"


class Heard(Protocol):
    """Who is told."""

    pid: int
    steps: int

    def updated(self) -> None:
        """Networks were updated somewhere."""

    def stepped(self, env: Any, steps: int) -> None:
        """Envs were stepped somewhere."""

    def awaits(self) -> None:
        """The program is going to learn."""


class RayCalls:
    """What is put on the modules of RLlib and Tune."""

    def __init__(self, heard: Heard) -> None:
        self.heard = heard
        self.reported: dict[str, int] = {}  # env steps, by the training that told of them

    def hooks(self) -> dict[str, ModuleHook]:
        """By module, what to change in it."""
        return {
            "ray.rllib.execution.rollout_ops": self._watch_sampling,
            "ray.rllib.core.learner.learner_group": self._watch_learners,
            "ray.tune.execution.tune_controller": self._watch_results,
        }

    def _watch_sampling(self, module: ModuleType) -> None:
        self.heard.awaits()
        sample: Callable[..., Any] = module.synchronous_parallel_sample

        @functools.wraps(sample)
        def sampling(*args: Any, **kwargs: Any) -> Any:
            steps = self.heard.steps
            found = sample(*args, **kwargs)
            if self._is_here and self.heard.steps == steps:  # no env was stepped in this process
                runners = kwargs.get("worker_set", args[0] if args else None)
                self.heard.stepped(runners, _steps_in(found))
            return found

        setattr(module, sample.__name__, sampling)

    def _watch_learners(self, module: ModuleType) -> None:
        group: Any = module.LearnerGroup
        update = group.update

        @functools.wraps(update)
        def updating(group: Any, *args: Any, **kwargs: Any) -> Any:
            found = update(group, *args, **kwargs)
            if self._is_here and group.is_remote:
                self.heard.updated()
            return found

        group.update = updating

    def _watch_results(self, module: ModuleType) -> None:
        self.heard.awaits()
        controller: Any = module.TuneController
        process = controller._process_trial_results

        @functools.wraps(process)
        def processing(controller: Any, trial: Any, results: Sequence[Any]) -> Any:
            if self._is_here:
                for result in results:
                    self._reported(str(trial), result)
            return process(controller, trial, results)

        controller._process_trial_results = processing

    def _reported(self, training: str, result: Any) -> None:
        sampled = result.get("env_runners", {}).get(_SAMPLED) or result.get("timesteps_total") or 0
        more = int(sampled) - self.reported.get(training, 0)
        self.reported[training] = int(sampled)
        self.heard.stepped(self, max(1, more))
        self.heard.updated()

    @property
    def _is_here(self) -> bool:
        return os.getpid() == self.heard.pid


def _steps_in(found: Any) -> int:
    """How many steps are in a batch or in episodes, with or without metrics beside them."""
    batches = found[0] if isinstance(found, tuple) else found
    try:
        if isinstance(batches, list):
            return max(1, sum(len(one) for one in batches))
        return max(1, len(batches))
    except TypeError:
        return 1
