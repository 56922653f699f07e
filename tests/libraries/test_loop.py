"""Any loop: what it does is noticed, and its env steps are played back."""

from __future__ import annotations

import argparse
import builtins
import importlib
import inspect
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import cloudpickle
import numpy as np
import pytest
import torch

from memfit.libraries.loop.main_code import WATCHED
from memfit.libraries.loop.playback import Playback
from memfit.libraries.loop.signals import Signals


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
