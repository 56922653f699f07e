"""The micro-batched PPO, against the library's on the same envs and seeds."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.logger import KVWriter, Logger
from stable_baselines3.common.torch_layers import FlattenExtractor
from stable_baselines3.common.vec_env import DummyVecEnv

from memfit.dropins import MicroBatchPPO, WindowRolloutBuffer
from tests.dropins.test_training import CNN, Walk, envs

STEPS = {"n_steps": 8, "batch_size": 8, "n_epochs": 2}
SAME = 1e-6


class Kept(KVWriter):
    """Keeps what is logged."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def write(self, key_values: dict[str, Any], key_excluded: Any, step: int = 0) -> None:
        self.rows.append(dict(key_values))


def trained(
    algorithm: type[PPO],
    kind: str = "history",
    *,
    discrete: bool = True,
    updates: int = 10,
    actions: Any = None,
    **options: Any,
) -> Any:
    """A model after so many rollouts of two epochs, and what it logged of each."""
    policy = {"picture": "CnnPolicy", "history": "MlpPolicy", "dict": "MultiInputPolicy"}[kind]
    stacked = 4 if kind == "picture" else 0
    env = envs(kind, discrete=discrete, stacked=stacked) if actions is None else actions()
    settings = {**STEPS, **(CNN if stacked else {}), **options}
    model = algorithm(policy, env, seed=3, device="cpu", **settings)
    kept = Kept()
    model.set_logger(Logger(None, [kept]))
    model.learn(updates * env.num_envs * settings["n_steps"])
    return model, [{k: v for k, v in row.items() if k.startswith("train/")} for row in kept.rows]


def apart(one: Any, other: Any) -> float:
    """The largest difference of two models' layers, relative to each layer's own size.

    Weights and bias together: a bias begins at zero, and what is near zero has no relative size.
    """
    a, b = one.policy.state_dict(), other.policy.state_dict()
    assert a.keys() == b.keys()
    layers: dict[str, list[str]] = {}
    for name in a:
        layers.setdefault(name.rpartition(".")[0], []).append(name)
    return max(relative(flat(a, names), flat(b, names)) for names in layers.values())


def flat(tensors: Any, names: list[str]) -> torch.Tensor:
    return torch.cat([tensors[name].double().flatten() for name in names])


def apart_in_all(one: Any, other: Any) -> float:
    """The difference of all parameters together, relative to their size."""
    a, b = (torch.cat([p.flatten() for p in m.policy.parameters()]) for m in (one, other))
    return relative(a, b)


def relative(a: torch.Tensor, b: torch.Tensor) -> float:
    a, b = a.detach().double(), b.detach().double()
    return float((a - b).norm() / a.norm().clamp(min=1e-12))


def assert_same(theirs: Any, ours: Any) -> None:
    (one, wanted), (other, found) = theirs, ours
    assert one._n_updates == other._n_updates >= 20 or one.target_kl
    assert apart_in_all(one, other) <= SAME
    # With this noise the actions are numbers that follow from the parameters' last digits, and
    # log_std, which is small, follows from the actions.
    assert one.use_sde or apart(one, other) <= SAME
    assert [row.keys() for row in found] == [row.keys() for row in wanted]
    for a, b in zip(wanted, found, strict=True):
        for name in a:
            # Some are small differences of float32 near one, whose last digit is 1.2e-7.
            assert b[name] == pytest.approx(a[name], rel=1e-5, abs=1e-6), name


class Pushed(Walk):
    """A walk whose action is another kind of space."""

    def __init__(self, space: spaces.Space[Any]) -> None:
        super().__init__("history", discrete=True)
        self.action_space = space

    def step(self, action: Any) -> Any:
        self.age += 1
        self.place += float(np.sum(action)) - 1 + self.np_random.normal() * 0.1
        done = abs(self.place) > 6
        return self._seen(), -abs(self.place - float(self.goal[0])), done, self.age >= 17, {}


RUNS: dict[str, dict[str, Any]] = {
    "discrete": {},
    "continuous": {"discrete": False},
    "dict": {"kind": "dict"},
    "picture": {"kind": "picture"},
    "clipped values": {"clip_range_vf": 0.1, "discrete": False},
    "entropy": {"ent_coef": 0.05},
    "no normalised advantages": {"normalize_advantage": False},
    "small gradients": {"max_grad_norm": 0.01},
    "large gradients": {"max_grad_norm": 1e6},
    "falling clip and rate": {"clip_range": lambda p: 0.2 * p, "learning_rate": lambda p: 1e-3 * p},
    "truncated minibatch": {"batch_size": 12},
    "whole rollout": {"batch_size": 16},
    "state-dependent noise": {"discrete": False, "use_sde": True, "sde_sample_freq": 4},
    "many discrete": {
        "actions": lambda: DummyVecEnv([lambda: Pushed(spaces.MultiDiscrete([3, 2]))] * 2)
    },
    "binary": {"actions": lambda: DummyVecEnv([lambda: Pushed(spaces.MultiBinary(3))] * 2)},
}


def in_pieces(*args: Any, **kwargs: Any) -> MicroBatchPPO:
    return MicroBatchPPO(*args, micro_batch_size=3, **kwargs)


@pytest.mark.parametrize("make", [PPO, MicroBatchPPO, in_pieces])
class TestContract:
    """What PPO promises, whichever part does it."""

    def test_it_learns(self, make: Any) -> None:
        """To go where it is paid for."""
        env = DummyVecEnv([Paid] * 4)
        settings = {**STEPS, "learning_rate": 1e-2, "seed": 1, "device": "cpu"}
        model = make("MlpPolicy", env, **settings)
        model.learn(4 * 16 * 4)
        chosen, _ = model.predict(np.zeros((1, 2), np.float32), deterministic=True)
        assert chosen.tolist() == [1]

    def test_what_is_logged(self, make: Any) -> None:
        _, rows = trained(make, "history", discrete=False, updates=2, clip_range_vf=0.2)
        names = "loss approx_kl clip_fraction policy_gradient_loss value_loss entropy_loss"
        names += " n_updates explained_variance std clip_range clip_range_vf learning_rate"
        assert rows[-1].keys() == {f"train/{name}" for name in names.split()}

    def test_a_model_without_an_env_can_be_loaded_and_asked(
        self, make: Any, tmp_path: Path
    ) -> None:
        model, _ = trained(make, updates=1)
        model.save(tmp_path / "model")
        loaded = type(model).load(tmp_path / "model")
        obs = np.zeros((2, 12), np.float32)
        asked = [m.predict(obs, deterministic=True)[0].tolist() for m in (model, loaded)]
        assert asked[0] == asked[1]

    def test_learning_goes_on(self, make: Any) -> None:
        model, _ = trained(make, updates=1)
        before = model._n_updates
        model.learn(16, reset_num_timesteps=False)
        assert model._n_updates == before + 2

    def test_settings_may_change_between_updates(self, make: Any) -> None:
        model, _ = trained(make, updates=1)
        model.batch_size, model.n_epochs = 16, 1
        model.learn(16)
        assert model._n_updates == 3


class Paid(gymnasium.Env[Any, Any]):
    """One of two actions is paid for."""

    observation_space = spaces.Box(-1, 1, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> Any:
        return np.zeros(2, np.float32), float(action), False, False, {}


@cache
def plain(run: str) -> Any:
    """The library's training, which all sizes are compared with."""
    return trained(PPO, **RUNS[run])


@pytest.mark.filterwarnings("ignore:You have specified a mini-batch size")
@pytest.mark.parametrize("micro", [1, 3])
@pytest.mark.parametrize("run", sorted(RUNS))
def test_training_is_that_of_ppo(run: str, micro: int) -> None:
    assert_same(plain(run), trained(MicroBatchPPO, micro_batch_size=micro, **RUNS[run]))


@pytest.mark.parametrize("micro", [8, 9, 10**9, None])
@pytest.mark.parametrize("kind", ["history", "dict"])
def test_a_micro_batch_as_large_as_the_minibatch_is_ppo_to_the_bit(
    kind: str, micro: int | None
) -> None:
    one, wanted = trained(PPO, kind)
    other, found = trained(MicroBatchPPO, kind, micro_batch_size=micro)
    assert apart(one, other) == 0.0
    assert other.samples_at_once == 8
    for a, b in zip(wanted, found, strict=True):
        assert a == pytest.approx(b, rel=1e-7)


@pytest.mark.parametrize("kind", ["history", "dict", "picture"])
def test_it_works_with_window_buffers(kind: str) -> None:
    ours = trained(
        MicroBatchPPO, kind, micro_batch_size=3, rollout_buffer_class=WindowRolloutBuffer
    )
    assert_same(trained(PPO, kind), ours)
    assert any(part.moves for track in ours[0].rollout_buffer.report() for part in track.parts)


@pytest.mark.parametrize("target", [1e-4, 2e-3])
def test_it_stops_early_where_ppo_does(target: float) -> None:
    options: dict[str, Any] = {"target_kl": target, "n_epochs": 6, "learning_rate": 3e-3}
    theirs = trained(PPO, **options)
    ours = trained(MicroBatchPPO, micro_batch_size=3, **options)
    assert theirs[0]._n_updates < 60, "the run must stop early to say anything"
    assert_same(theirs, ours)
    assert theirs[0]._n_updates == ours[0]._n_updates


def test_it_says_that_it_stops(capsys: pytest.CaptureFixture[str]) -> None:
    trained(MicroBatchPPO, updates=2, micro_batch_size=3, target_kl=1e-9, verbose=1)
    assert "Early stopping" in capsys.readouterr().out


def test_no_more_than_a_micro_batch_is_gathered_or_goes_through_the_network(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, _ = trained(MicroBatchPPO, updates=1, micro_batch_size=3)
    seen: list[int] = []
    gathered: list[int] = []
    model.policy.features_extractor.register_forward_hook(
        lambda module, given, out: seen.append(len(given[0]))
    )
    gather = RolloutBuffer._get_samples

    def watched(self: Any, indices: Any, env: Any = None) -> Any:
        gathered.append(len(indices))
        return gather(self, indices)

    monkeypatch.setattr(RolloutBuffer, "_get_samples", watched)
    model.train()
    assert seen == [3, 3, 2] * 4
    assert gathered == seen


def test_a_saved_model_goes_on_alike(tmp_path: Path) -> None:
    model, _ = trained(MicroBatchPPO, updates=2, micro_batch_size=3)
    model.save(tmp_path / "model")
    loaded = MicroBatchPPO.load(tmp_path / "model", env=envs("history", discrete=True))
    assert loaded.micro_batch_size == 3
    assert apart(model, loaded) == 0.0
    other = MicroBatchPPO.load(tmp_path / "model", micro_batch_size=2)
    assert other.samples_at_once == 2


def test_a_model_of_the_library_goes_on_in_micro_batches(tmp_path: Path) -> None:
    model, _ = trained(PPO, updates=2)
    model.save(tmp_path / "model")
    env = envs("history", discrete=True)
    ours = MicroBatchPPO.load(tmp_path / "model", env=env, micro_batch_size=3, device="cpu")
    library = PPO.load(tmp_path / "model", env=envs("history", discrete=True), device="cpu")
    for one in (library, ours):
        one.set_random_seed(5)
        one.learn(64)
    assert apart(library, ours) <= SAME


def test_a_large_limit_takes_the_whole_minibatch_and_disturbs_nothing() -> None:
    """Measuring small updates uses no random numbers and leaves no gradients behind."""
    one, _ = trained(PPO)
    other, _ = trained(MicroBatchPPO, memory_limit="1TiB")
    assert other.samples_at_once == 8
    assert apart(one, other) == 0.0


class Dropping(FlattenExtractor):
    """Statistics and random numbers, which measuring must not touch."""

    def __init__(self, space: Any) -> None:
        super().__init__(space)
        self.norm = torch.nn.BatchNorm1d(self.features_dim)
        self.drop = torch.nn.Dropout(0.5)

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        features: torch.Tensor = self.drop(self.norm(super().forward(observations)))
        return features


def test_measuring_leaves_statistics_and_random_numbers_alone() -> None:
    options: dict[str, Any] = {"policy_kwargs": {"features_extractor_class": Dropping}}
    one, _ = trained(PPO, updates=3, **options)
    other, _ = trained(MicroBatchPPO, updates=3, memory_limit="1TiB", **options)
    assert apart(one, other) == 0.0
