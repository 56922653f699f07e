"""Training with the windowed buffers ends with the same parameters, to the bit."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.wrappers import FrameStackObservation
from sb3_contrib import QRDQN, TQC, TRPO, MaskablePPO, RecurrentPPO
from stable_baselines3 import A2C, DDPG, DQN, PPO, SAC, TD3, HerReplayBuffer
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecNormalize

from memfit.dropins import (
    WindowHerReplayBuffer,
    WindowMaskableRolloutBuffer,
    WindowRecurrentRolloutBuffer,
    WindowReplayBuffer,
    WindowRolloutBuffer,
)


class Walk(gymnasium.Env[Any, Any]):
    """A point that walks; its observation is a picture, a history, a Dict or a goal's Dict."""

    def __init__(self, kind: str, *, discrete: bool, limit: int = 17) -> None:
        self.kind = kind
        self.limit = limit
        self.action_space = spaces.Discrete(3) if discrete else spaces.Box(-1, 1, (1,))
        picture = spaces.Box(0, 255, (1, 36, 36), np.uint8)
        near = spaces.Box(-20, 20, (12,), np.float32)
        goal = spaces.Box(-20, 20, (1,), np.float32)
        kinds: dict[str, spaces.Space[Any]] = {
            "picture": picture,
            "history": near,
            "dict": spaces.Dict({"history": near, "target": goal}),
            "goal": spaces.Dict({"observation": near, "achieved_goal": goal, "desired_goal": goal}),
        }
        self.observation_space = kinds[kind]
        self.history = np.zeros(12, np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.history[:] = 0
        self.place, self.age = 0.0, 0
        self.goal = np.array([self.np_random.uniform(-3, 3)], np.float32)
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        move = float(action) - 1 if isinstance(self.action_space, spaces.Discrete) else action[0]
        self.place += float(move) + self.np_random.normal() * 0.1
        self.age += 1
        reward = -abs(self.place - float(self.goal[0]))
        if self.kind == "goal":
            reward = float(self.compute_reward(np.array([self.place]), self.goal, {}))
        return self._seen(), reward, abs(self.place) > 6, self.age >= self.limit, {}

    def compute_reward(self, achieved: Any, desired: Any, info: Any) -> Any:
        return -np.linalg.norm(np.asarray(achieved) - desired, axis=-1)

    def action_masks(self) -> Any:
        return np.array([self.age % 2 == 0, True, True])

    def _seen(self) -> Any:
        self.history[:-1] = self.history[1:]
        self.history[-1] = self.place
        at = np.array([self.place], np.float32)
        if self.kind == "picture":
            picture = np.zeros((1, 36, 36), np.uint8)
            column = int(np.clip(18 + 2 * self.place, 0, 35))
            picture[0, 10:20, column] = 200
            return picture
        if self.kind == "dict":
            return {"history": self.history.copy(), "target": self.goal}
        if self.kind == "goal":
            return {
                "observation": self.history.copy(),
                "achieved_goal": at,
                "desired_goal": self.goal,
            }
        return self.history.copy()


def envs(kind: str, *, discrete: bool, n_envs: int = 2, stacked: int = 0) -> Any:
    made: Any = DummyVecEnv([lambda: Walk(kind, discrete=discrete)] * n_envs)
    return VecFrameStack(made, stacked, channels_order="first") if stacked else made


def parameters(algorithm: type[Any], policy: str, env: Any, steps: int, **options: Any) -> Any:
    put_into = options.pop("put_into", None)
    model = algorithm(policy, env, seed=3, device="cpu", **options)
    if put_into is not None:
        put_into(model)
    model.learn(steps)
    buffer = getattr(model, "replay_buffer", None) or model.rollout_buffer
    return {k: v.clone() for k, v in model.policy.state_dict().items()}, buffer, model._n_updates


def assert_same_training(
    algorithm: type[Any], policy: str, make: Any, steps: int, ours: Any, **options: Any
) -> Any:
    library = options.pop("library", {})
    a, _, updates = parameters(algorithm, policy, make(), steps, **options, **library)
    b, buffer, _ = parameters(algorithm, policy, make(), steps, **options, **ours)
    assert updates >= 20
    assert a.keys() == b.keys()
    assert all(torch.equal(a[k], b[k]) for k in a)
    assert any(part.moves for track in buffer.report() for part in track.parts)
    assert all(track.complete == 0 for track in buffer.report())
    return buffer


CNN = {"policy_kwargs": {"features_extractor_kwargs": {"features_dim": 16}}}
FAST = {"n_steps": 16, "batch_size": 8, "n_epochs": 2}
ROLLOUT = {"rollout_buffer_class": WindowRolloutBuffer}
REPLAY = {"replay_buffer_class": WindowReplayBuffer}
OFF: dict[str, Any] = {"learning_starts": 30, "buffer_size": 120, "batch_size": 16}


@pytest.mark.parametrize("kind", ["picture", "history", "dict"])
def test_ppo(kind: str) -> None:
    policy = {"picture": "CnnPolicy", "history": "MlpPolicy", "dict": "MultiInputPolicy"}[kind]
    stacked = 4 if kind == "picture" else 0
    options = {**FAST, **(CNN if stacked else {})}
    assert_same_training(
        PPO,
        policy,
        lambda: envs(kind, discrete=True, stacked=stacked),
        32 * 10,
        ROLLOUT,
        **options,
    )


def test_ppo_with_normalised_observations() -> None:
    """Normalised histories are no windows: stored as they are, and still the same training."""
    made = [
        parameters(
            PPO, "MlpPolicy", VecNormalize(envs("history", discrete=False)), 32 * 10, **FAST, **more
        )
        for more in ({}, ROLLOUT)
    ]
    assert all(torch.equal(made[0][0][k], made[1][0][k]) for k in made[0][0])


@pytest.mark.parametrize("algorithm", [A2C, TRPO])
def test_a2c_and_trpo(algorithm: type[Any]) -> None:
    options = {"n_steps": 8}
    if algorithm is TRPO:
        options |= {"batch_size": 8, "n_critic_updates": 2, "cg_max_steps": 3}
    steps = 8 * 2 * 20
    make = lambda: envs("history", discrete=False)  # noqa: E731
    assert_same_training(algorithm, "MlpPolicy", make, steps, ROLLOUT, **options)


def test_maskable_ppo() -> None:
    ours = {"rollout_buffer_class": WindowMaskableRolloutBuffer}
    make = lambda: envs("dict", discrete=True)  # noqa: E731
    assert_same_training(MaskablePPO, "MultiInputPolicy", make, 32 * 10, ours, **FAST)


@pytest.mark.parametrize("kind", ["history", "dict"])
def test_recurrent_ppo(kind: str) -> None:
    policy = "MlpLstmPolicy" if kind == "history" else "MultiInputLstmPolicy"
    ours = {"put_into": WindowRecurrentRolloutBuffer.put_into}
    options = {**FAST, "policy_kwargs": {"lstm_hidden_size": 8}}
    make = lambda: envs(kind, discrete=True)  # noqa: E731
    assert_same_training(RecurrentPPO, policy, make, 32 * 10, ours, **options)


@pytest.mark.parametrize("stored", [{}, {"compression": "zstd"}, {"storage": "disk"}])
@pytest.mark.parametrize("algorithm", [DQN, QRDQN])
def test_dqn_on_stacked_pictures(algorithm: type[Any], stored: dict[str, Any]) -> None:
    ours = {**REPLAY, "replay_buffer_kwargs": stored}
    make = lambda: envs("picture", discrete=True, n_envs=1, stacked=4)  # noqa: E731
    buffer = assert_same_training(algorithm, "CnnPolicy", make, 150, ours, **OFF, **CNN)
    assert buffer.full
    buffer.close()


@pytest.mark.parametrize("algorithm", [SAC, TD3, DDPG, TQC])
def test_continuous_off_policy(algorithm: type[Any]) -> None:
    make = lambda: envs("history", discrete=False)  # noqa: E731
    assert_same_training(algorithm, "MlpPolicy", make, 240, REPLAY, **OFF)


def test_n_steps() -> None:
    from stable_baselines3.common.buffers import NStepReplayBuffer

    steps = {"replay_buffer_kwargs": {"n_steps": 3, "gamma": 0.9}}
    make = lambda: envs("history", discrete=True)  # noqa: E731
    library = {"replay_buffer_class": NStepReplayBuffer}
    assert_same_training(DQN, "MlpPolicy", make, 240, REPLAY, library=library, **steps, **OFF)


def test_her() -> None:
    kwargs = {"replay_buffer_kwargs": {"n_sampled_goal": 2}}
    make = lambda: envs("goal", discrete=False)  # noqa: E731
    library = {"replay_buffer_class": HerReplayBuffer}
    ours = {"replay_buffer_class": WindowHerReplayBuffer}
    options = {**OFF, "learning_starts": 60, **kwargs}
    assert_same_training(SAC, "MultiInputPolicy", make, 240, ours, library=library, **options)


def test_gymnasium_frame_stack() -> None:
    def make() -> Any:
        return FrameStackObservation(Walk("history", discrete=True), 3)

    assert_same_training(DQN, "MlpPolicy", make, 150, REPLAY, **OFF)


def test_a_saved_model_and_buffer_go_on_alike(tmp_path: Any) -> None:
    results = []
    for way in ("go on", "pickle", "file"):
        model = SAC(
            "MlpPolicy", envs("history", discrete=False), seed=3, device="cpu", **REPLAY, **OFF
        )
        model.learn(100)
        if way == "pickle":
            model.save_replay_buffer(tmp_path / "buffer")
            model.load_replay_buffer(tmp_path / "buffer.pkl")
        elif way == "file":
            model.replay_buffer.save(tmp_path / "buffer.rb")  # type: ignore[union-attr]
            model.replay_buffer.load(tmp_path / "buffer.rb")  # type: ignore[union-attr]
        torch.manual_seed(1)
        np.random.seed(1)
        model.train(gradient_steps=5, batch_size=16)
        results.append({k: v.clone() for k, v in model.policy.state_dict().items()})
    for other in results[1:]:
        assert all(torch.equal(results[0][k], other[k]) for k in other)
