"""Any loop: what it does is noticed, its settings are found, and its arrays become facts."""

from __future__ import annotations

import argparse
import builtins
import importlib
import inspect
import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import FunctionType
from typing import Any

import cloudpickle
import numpy as np
import pytest
import torch

from memfit.libraries import library_of
from memfit.libraries.loop.dimensions import length_setting, with_formulas
from memfit.libraries.loop.main_code import WATCHED
from memfit.libraries.loop.own_files import OwnFiles
from memfit.libraries.loop.playback import Playback
from memfit.libraries.loop.setting_sources import SettingSources
from memfit.libraries.loop.signals import Signals
from memfit.libraries.loop.training import LoopTraining
from memfit.model import ArraySpec, EvidenceKind
from memfit.model.job import Job, Look, TargetKind
from memfit.model.training import Looping
from memfit.model.trial import RunLength, TrialArrays, TrialEnd, TrialReading

TRIAL = TrialReading(updates=10, cycles=2, env_steps=100, seconds=1.0, ended=TrialEnd.SEEN)


class Heard:
    """What a loop was heard to do."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.bare = 0

    def stepped(self, env: object, steps: int) -> None:
        self.words.append(f"{type(env).__name__} {steps}")

    def updated(self) -> None:
        self.words.append("update")

    def works_on(self, running: Callable[[], bool]) -> None:
        self.words.append("whole")

    def started_process(self) -> None:
        self.words.append("started")

    def waits_for(self, running: Callable[[], bool]) -> None:
        self.words.append("waits")

    def compiled(self) -> None:
        self.words.append("compiled")

    def goes_on(self) -> None:
        self.bare += 1

    def due(self, place: str, *, now: bool) -> bool:
        return now

    def saving(self) -> None:
        self.words.append("saving")

    def saved(self) -> None:
        self.words.append("saved")


@pytest.fixture
def signals() -> Iterator[Signals]:
    """Signals that notice classes of modules that are imported from now on."""
    load = importlib._bootstrap._load_unlocked  # type: ignore[attr-defined]
    found = Signals()
    found.hooks()["builtins"](builtins)
    found.start(lambda: None, play_back=False)
    found.listener = Heard()
    yield found
    importlib._bootstrap._load_unlocked = load  # type: ignore[attr-defined]
    delattr(builtins, WATCHED)


def heard(signals: Signals) -> list[str]:
    assert isinstance(signals.listener, Heard)
    return signals.listener.words


class TestSignals:
    def test_the_outermost_env_counts_and_a_vector_of_them_by_all(self, signals: Signals) -> None:
        @signals.watched
        class Inner:
            def reset(self) -> int:
                return 0

            def step(self, action: int) -> int:
                return action + 1

        @signals.watched
        class Outer:
            num_envs = 3
            inner = Inner()

            def reset(self) -> int:
                return self.inner.reset()

            def step(self, action: int) -> int:
                return self.inner.step(action)

        assert Outer().step(4) == 5
        Inner().step(1)
        assert heard(signals) == ["Outer 3", "Inner 1"]

    def test_what_updates_by_itself_is_no_env(self, signals: Signals) -> None:
        @signals.watched
        class Agent:
            def reset(self) -> None:
                return

            def step(self, seen: int) -> None:
                signals.updated()

        Agent().step(1)
        assert heard(signals) == ["update"]

    def test_optimizers_and_schedulers_are_no_envs(self, signals: Signals) -> None:
        @signals.watched
        class Optimizer:
            def zero_grad(self) -> None:
                return

            def reset(self) -> None:
                return

            def step(self) -> None:
                return

        @signals.watched
        class Scheduler:
            def step(self) -> None:
                return

        Optimizer().step()
        Scheduler().step()
        assert heard(signals) == []

    def test_classes_of_imports_are_watched_and_those_of_functions_at_the_first_update(
        self, signals: Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "some_envs.py").write_text(ENVS)
        monkeypatch.syspath_prepend(tmp_path)
        module: Any = importlib.import_module("some_envs")
        local = module.made_in_a_function()
        local().step(1)
        assert heard(signals) == []
        signals.updated()
        local().step(1)
        module.Robots().step(1)
        assert heard(signals) == ["update", "Local 1", "Robots 6"]

    def test_batches_of_a_collector_count_where_no_env_is_stepped_here(
        self, signals: Signals
    ) -> None:
        @signals.watched
        class Collector:
            requested_frames_per_batch = 20

            def update_policy_weights_(self) -> None:
                return

            def iterator(self) -> Iterator[int]:
                return self._batches()  # as TorchRL's, which are wrapped

            def _batches(self) -> Iterator[int]:
                yield 1
                signals.stepped(self, 7)
                yield 2

        assert list(Collector().iterator()) == [1, 2]
        assert heard(signals) == ["Collector 20", "Collector 7"]

    def test_a_network_counts_only_with_the_spaces_of_an_env(self, signals: Signals) -> None:
        @signals.watched
        class Agent(torch.nn.Module):
            def reset(self) -> None:
                return

            def step(self, seen: int) -> None:
                return

        @signals.watched
        class TorchEnv(Agent):
            action_spec = None
            batch_size = torch.Size([2, 3])

            def step(self, seen: int) -> None:
                return

        Agent().step(1)
        TorchEnv().step(1)
        assert heard(signals) == ["TorchEnv 6"]

    def test_begun_is_told_once_and_nothing_after_the_end(self, signals: Signals) -> None:
        begun: list[int] = []
        signals.start(lambda: begun.append(1), play_back=False)
        signals.updated()
        signals.updated()
        assert begun == [1]
        listener = signals.listener
        signals.stop()
        assert isinstance(listener, Heard) and len(listener.words) == 2

    def test_a_worker_gets_the_methods_themselves(self, signals: Signals) -> None:
        @signals.watched
        class Env:
            def reset(self) -> int:
                return 0

            def step(self, action: int) -> int:
                return action

        assert list(inspect.signature(Env().step).parameters) == ["action"]
        sent = cloudpickle.dumps(Env)
        assert b"memfit" not in sent.replace(__name__.encode(), b"")
        assert type(vars(pickle.loads(sent))["step"]) is FunctionType

    def test_every_optimizer_of_torch_is_heard(self) -> None:
        found = Signals()
        found.start(lambda: None, play_back=False)
        found.listener = Heard()
        registered: list[Any] = []
        kind = type("Optimizer", (), {})
        module: Any = argparse.Namespace(
            register_optimizer_step_post_hook=registered.append, Optimizer=kind
        )
        found.hooks()["torch.optim.optimizer"](module)
        kind()
        assert found.optimizers == 1
        registered[0](torch.optim.SGD([torch.zeros(1)]), (), {})
        assert heard(found) == ["update"]


ENVS = """
class Robots:
    env_num = 6
    def get_observations(self): ...
    def step(self, action): ...
def made_in_a_function():
    class Local:
        def reset(self): ...
        def step(self, action): ...
    return Local
"""


class SlowEnv:
    action_space = object()

    def __init__(self, length: int = 50) -> None:
        self.steps, self.length = 0, length

    def real(self) -> tuple[Any, ...]:
        self.steps += 1
        return np.full(4, self.steps), 1.0, False, self.steps % self.length == 0, {}


class TestPlayback:
    def test_a_slow_env_is_played_back_after_some_steps(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("memfit.libraries.loop.playback._WORTH_SECONDS", 0.0)
        env, playback = SlowEnv(), Playback()
        playback.step(env, 1, env.real)
        playback.reset(env, lambda: (np.zeros(4), {}))
        results = [playback.step(env, 1, env.real) for _ in range(400)]
        assert env.steps == 256 and playback.played == 145
        assert results[-1][0] is not results[300][0]
        first, again = results[-1][0], results[-1 - (256 - 64)]
        assert first.shape == again[0].shape
        assert playback.reset(env, lambda: 1 // 0)[0].tolist() == [0.0] * 4

    def test_a_quick_one_and_what_is_no_env_are_stepped_on(self) -> None:
        env, playback = SlowEnv(), Playback()
        playback.reset(env, lambda: 0)
        for _ in range(400):
            playback.step(env, 1, lambda: (0, 0.0, False, {}))
        assert playback.played == 0

    def test_what_stands_in_another_is_not_and_in_a_network_is(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("memfit.libraries.loop.playback._WORTH_SECONDS", 0.0)

        class Network(SlowEnv):
            zero_grad = None

        inner, playback = SlowEnv(), Playback()
        outer = SlowEnv()
        playback.reset(outer, lambda: playback.reset(inner, lambda: (0, {})))
        for _ in range(300):
            playback.step(outer, 2, lambda: playback.step(inner, 1, inner.real))
        assert inner.steps == 256 and playback.played == 88
        network, playback = Network(), Playback()
        playback.reset(network, lambda: playback.reset(inner, lambda: (0, {})))
        for _ in range(300):
            playback.step(network, 2, lambda: playback.step(inner, 1, inner.real))
        assert playback.played == 44

    def test_an_env_whose_episode_has_not_ended_is_stepped_on_until_it_has(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A script may wait for an end that would never be played."""
        monkeypatch.setattr("memfit.libraries.loop.playback._WORTH_SECONDS", 0.0)
        env, playback = SlowEnv(length=300), Playback()
        playback.reset(env, lambda: 0)
        played = [playback.step(env, 1, env.real) for _ in range(600)]
        assert env.steps == 300
        assert sum(result[3] for result in played) == 2, "the real end, and once as it was played"
        big, playback = SlowEnv(length=300), Playback()
        monkeypatch.setattr("memfit.libraries.loop.playback._MOST_BYTES", 2**10)
        playback.reset(big, lambda: 0)
        played = [playback.step(big, 1, big.real) for _ in range(400)]
        assert big.steps == 300 and sum(result[3] for result in played) > 2

    def test_many_envs_end_by_themselves(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("memfit.libraries.loop.playback._WORTH_SECONDS", 0.0)
        env, playback, none = SlowEnv(), Playback(), np.zeros(4, bool)
        playback.reset(env, lambda: 0)
        for _ in range(300):
            playback.step(env, 4, lambda: (0, 0.0, none, none, {}))
        assert playback.played == 4 * 44

    def test_the_env_itself_goes_on_at_the_end(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("memfit.libraries.loop.playback._WORTH_SECONDS", 0.0)
        env, playback = SlowEnv(), Playback()
        playback.reset(env, lambda: 0)
        for _ in range(300):
            playback.step(env, 1, env.real)
        playback.end()
        before = env.steps
        playback.step(env, 1, env.real)
        assert env.steps == before + 1


class TestSettings:
    def test_the_length_is_known_by_its_name(self) -> None:
        assert length_setting({"seeds": 900, "TOTAL_TIMESTEPS": 200}, TRIAL) == "TOTAL_TIMESTEPS"
        assert length_setting({"steps": 100}, TRIAL) == "", "of a rollout"
        assert length_setting({"steps": 101}, TRIAL) == "steps"
        assert length_setting({"max_steps": 900, "num_frames": 400}, TRIAL) == "num_frames"

    def test_the_runs_own_loops_know_the_length_better(self) -> None:
        ends = replace(TRIAL, run=RunLength(steps=500, where="for", exact=True))
        assert length_setting({"total_steps": 9000, "max_steps": 510}, ends) == "max_steps"
        assert length_setting({"total_steps": 9000, "buffer_size": 500}, ends) == ""

    def test_dimensions_are_settings_or_products_of_telling_ones(self) -> None:
        array = ArraySpec(name="obs", shape=(128, 4, 512, 3), dtype="float32", itemsize=4)
        settings = {"num_steps": 128, "num_envs": 4, "minibatches": 4, "epochs": 3}
        found = with_formulas(array, settings)
        assert found.shape == ("num_steps", "num_envs", "num_envs * num_steps", 3)
        assert found.evidence is EvidenceKind.PROBED
        replay = replace(array, shape=(500, 4))
        parts = with_formulas(replay, {"num_envs": 4, "buffer_size": 2000})
        assert parts.shape == ("buffer_size // num_envs", "num_envs")
        weights = replace(array, kind="parameters")
        assert with_formulas(weights, settings) is weights


def training(text: Path = Path("none.py")) -> LoopTraining:
    own = OwnFiles(Job(kind=TargetKind.SCRIPT, target=str(text)))
    return LoopTraining(Signals(), own, SettingSources({}))


def held(path: str, *shape: int, resident: float = 1.0) -> TrialArrays:
    size = 4 * int(np.prod(shape))
    return TrialArrays(
        path=path, bytes=size, resident=int(resident * size), dtype="float32", shape=shape
    )


class TestFacts:
    def test_it_is_a_loop_and_no_library_owns_its_objects(self) -> None:
        assert isinstance(training(), Looping)
        assert not library_of("loop").owns(torch.nn.Linear(1, 1))

    def test_only_programs_that_are_surveyed_are_listened_to(self) -> None:
        job = Job(kind=TargetKind.SCRIPT, target="train.py")
        hooks = library_of("loop").hooks

        def stop(training: object) -> None:
            return

        assert list(hooks(stop, job))
        for other in (replace(job, look=Look.REHEARSE), replace(job, kind=TargetKind.SPEC)):
            assert not list(hooks(stop, other))

    def test_networks_buffers_and_optimizers_have_rows(self) -> None:
        network = [
            held("agent.actor.0.weight", 512, 512),
            held("agent.actor.0.weight grad", 512, 512),
        ]
        always = [held("main().rb.observations", 1000, 512), held("optimizer exp_avg", 512, 512)]
        both = {"update": [*network, *always, held("update().minibatch", 1000, 100)]}
        both["rollout"] = [network[0], *always]
        facts = training().observed(TRIAL, both, [])
        rows = {array.name: array for array in facts.spec.arrays}
        assert rows["agent.actor.parameters"].kind == "parameters"
        assert rows["agent.actor.gradients"].phases == ("update",)
        assert rows["optimizer.state"].kind == "optimizer"
        assert rows["rb.observations"].shape == (1000, 512)
        assert rows["minibatch"].phases == ("update",)
        assert facts.trial.held["rb.observations"] == 4 * 1000 * 512

    def test_a_buffer_that_fills_is_told_by_steps(self) -> None:
        found = {"rollout": [held("rb.observations", 1000, 512, resident=0.1)]}
        spec = training().observed(TRIAL, found, []).spec
        assert spec.arrays[0].filled == "env_steps"
        assert spec.length == "env_steps" and spec.knobs["env_steps"] == 1000

    def test_what_the_trial_did_not_see_is_told(self, tmp_path: Path) -> None:
        text = tmp_path / "train.py"
        text.write_text("torch.save(agent, 'agent.pt')")
        facts = training(text).observed(replace(TRIAL, env_steps=0), {}, [])
        assert len(facts.spec.notes) == 2
        seen = replace(TRIAL, peaks={"save": 1}, ended=TrialEnd.TIME)
        (note,) = training(text).observed(seen, {}, []).spec.notes
        assert "10 updates" in note

    def test_an_evaluation_that_is_yet_to_come_is_told(self, tmp_path: Path) -> None:
        text = tmp_path / "train.py"
        text.write_text("def evaluate(agent, env): ...")
        (note,) = training(text).observed(TRIAL, {}, []).spec.notes
        assert "evaluation" in note
        seen = replace(TRIAL, peaks={"evaluate": 1})
        assert not training(text).observed(seen, {}, []).spec.notes

    def test_a_queue_of_transitions_is_told_by_its_bound(self) -> None:
        queue = replace(held("agent.memory[*][*]", 50, 2000), elements=50, capacity=1000, count=50)
        facts = training().observed(TRIAL, {"rollout": [queue]}, [])
        array = facts.spec.arrays[0]
        assert (array.shape, array.filled) == ((1000, 8000), "ceil_div(env_steps, 2)")
        assert facts.spec.knobs == {"env_steps": 2000}
        assert facts.trial.held["agent.memory[*][*]"] == 50 * 8000

    def test_a_list_that_grows_is_told_by_the_runs_length(self) -> None:
        kept = replace(held("history[*]", 50, 2000), elements=50, count=50, grows=True)
        facts = training().observed(TRIAL, {"rollout": [kept]}, [])
        assert facts.spec.arrays[0].filled is None and facts.spec.knobs == {}
        ends = replace(TRIAL, run=RunLength(steps=3000, where="for", exact=True))
        facts = training().observed(ends, {"rollout": [kept]}, [])
        array = facts.spec.arrays[0]
        assert (array.shape, array.filled) == ((1500, 8000), "ceil_div(env_steps, 2)")
        assert facts.spec.knobs == {"env_steps": 3000}
        assert any("grows as long as" in note for note in facts.spec.notes)

    def test_the_runs_own_length_is_used_where_it_is_known(self, tmp_path: Path) -> None:
        text = tmp_path / "train.py"
        text.write_text("TOTAL_TIMESTEPS = 400\nBUFFER_SIZE = 1000\n")
        found = {"rollout": [held("rb.observations", 1000, 512, resident=0.1)]}
        variables = [("TOTAL_TIMESTEPS", 400), ("BUFFER_SIZE", 1000)]
        facts = training(text).observed(TRIAL, found, variables)
        assert facts.spec.knobs == {"BUFFER_SIZE": 1000, "TOTAL_TIMESTEPS": 400}
        assert facts.spec.arrays[0].shape == ("BUFFER_SIZE", 512)
        assert facts.spec.arrays[0].filled == "TOTAL_TIMESTEPS"
        assert facts.spec.scale == {"BUFFER_SIZE": 1000}
