"""What RLlib and Tune do in other processes is told as rollouts and updates."""

from __future__ import annotations

import os
import re
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from memfit.libraries.loop.ray_calls import PROCESSES, RayCalls


class Heard:
    def __init__(self) -> None:
        self.pid = os.getpid()
        self.steps = self.waits = 0
        self.told: list[Any] = []

    def updated(self) -> None:
        self.told.append("update")

    def stepped(self, env: Any, steps: int) -> None:
        self.steps += 1
        self.told.append(steps)

    def awaits(self) -> None:
        self.waits += 1


def put_on(heard: Heard, name: str, **things: Any) -> Any:
    module = ModuleType(name)
    vars(module).update(things)
    RayCalls(heard).hooks()[name](module)
    return module


@pytest.mark.parametrize(
    ("found", "steps"),
    [([range(30), range(20)], 50), (([range(30)], {"metric": 1}), 30), (range(7), 7), (None, 1)],
)
def test_what_env_runners_bring_is_a_rollout(found: Any, steps: int) -> None:
    def synchronous_parallel_sample(*, worker_set: Any) -> Any:
        return found

    heard = Heard()
    name = "ray.rllib.execution.rollout_ops"
    module = put_on(heard, name, synchronous_parallel_sample=synchronous_parallel_sample)
    assert module.synchronous_parallel_sample(worker_set=object()) is found
    assert heard.told == [steps]
    assert heard.waits


def test_envs_of_this_process_have_told_of_themselves() -> None:
    heard = Heard()

    def synchronous_parallel_sample(*, worker_set: Any) -> Any:
        heard.stepped(worker_set, 1)
        return [range(30)]

    name = "ray.rllib.execution.rollout_ops"
    module = put_on(heard, name, synchronous_parallel_sample=synchronous_parallel_sample)
    module.synchronous_parallel_sample(worker_set=object())
    assert heard.told == [1]


@pytest.mark.parametrize(("is_remote", "told"), [(True, ["update"]), (False, [])])
def test_learners_of_other_processes_update(is_remote: bool, told: list[str]) -> None:
    class LearnerGroup:
        def __init__(self) -> None:
            self.is_remote = is_remote

        def update(self, *, episodes: Any) -> Any:
            return episodes

    heard = Heard()
    module = put_on(heard, "ray.rllib.core.learner.learner_group", LearnerGroup=LearnerGroup)
    assert module.LearnerGroup().update(episodes=3) == 3
    assert heard.told == told


def test_a_training_under_tune_tells_by_its_results() -> None:
    class TuneController:
        def _process_trial_results(self, trial: Any, results: Any) -> Any:
            return len(results)

    heard = Heard()
    module = put_on(heard, "ray.tune.execution.tune_controller", TuneController=TuneController)
    sampled = [
        {"env_runners": {"num_env_steps_sampled_lifetime": 1000}},
        {"env_runners": {"num_env_steps_sampled_lifetime": 1500}},
    ]
    assert module.TuneController()._process_trial_results("one", sampled) == 2
    module.TuneController()._process_trial_results("two", [{"timesteps_total": 40}, {"loss": 1}])
    assert heard.told == [1000, "update", 500, "update", 40, "update", 1, "update"]


def test_a_forked_process_tells_nothing() -> None:
    heard = Heard()
    heard.pid = -1
    group = type("LearnerGroup", (SimpleNamespace,), {"update": lambda self: 1, "is_remote": True})
    module = put_on(heard, "ray.rllib.core.learner.learner_group", LearnerGroup=group)
    assert module.LearnerGroup().update() == 1
    assert not heard.told


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("ray::SingleAgentEnvRunner.sample", "env_runners"),
        ("ray::MultiAgentEnvRunner", "env_runners"),
        ("ray::_WrappedExecutable", "learners"),
        ("ray::IDLE", "ray"),
        ("ray::DashboardAgent", "ray"),
        ("/x/site-packages/ray/core/src/ray/raylet/raylet --raylet_socket_name=s", "ray"),
        ("python -u /x/site-packages/ray/autoscaler/_private/monitor.py", "ray"),
        ("ray::PPO.train()", "actors"),
        ("python train.py", None),
    ],
)
def test_processes_have_names_of_their_part(command: str, name: str | None) -> None:
    rows = (row for pattern, row, _ in PROCESSES.patterns if re.search(pattern, command))
    assert next(rows, None) == name
