"""Trainings of stable-baselines3, driven in a child: their real objects, their own code, any size.

The run's own `collect_rollouts` and `train` are called, so that every copy, up-cast and temporary
of the installed version, of a custom policy or of a custom buffer is there. Only the amount of work
is cut: the env is stepped a little and what it gave is repeated into the rest of the buffer, and an
update stops after a few minibatches.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from memfit.libraries.driven import DrivenTraining, state_tensors
from memfit.libraries.sb3 import facts
from memfit.libraries.sb3.changed_parts import lacking
from memfit.libraries.sb3.changed_settings import settings_of
from memfit.libraries.sb3.facts import SeenUpdate
from memfit.model import RunSpec
from memfit.model.changes import Changes
from memfit.model.training import Beside

WINDOW_STEPS, WINDOW_SECONDS = 16, 1.0  # enough to see how observations move on


class Sb3Training(DrivenTraining):
    """What on-policy and off-policy trainings have in common.

    `rest` does what is left of the model's own set-up for learning, and returns the callback.
    """

    def __init__(
        self,
        model: Any,
        *,
        length: int | None,
        callback: Any,
        rest: Callable[[], Any],
        env_fns: Sequence[Callable[[], Any]],
    ) -> None:
        self.model = model
        self.length = length
        self.run_callback = callback
        self.rest = rest
        self.env_fns = env_fns
        self.seen = SeenUpdate()
        self.callback: Any = None
        self.arrays_of_buffer: list[str] = []

    def facts(self) -> RunSpec:
        return facts.read(self.model, self.length, self.run_callback, self.seen)

    def settings(self) -> Mapping[str, int]:
        return settings_of(self.model)

    def lacks(self, changes: Changes) -> Sequence[str]:
        return lacking(self.model, changes)

    def identity(self) -> object:
        return self.model

    def prepare(self) -> None:
        model = self.model
        self.arrays_of_buffer = facts.array_names(self.facts())
        model.tensorboard_log = None
        model.verbose = 0
        if getattr(model, "target_kl", None) and hasattr(model, "n_epochs"):
            model.target_kl = 1e9  # an update that ends early would hide its peak
        if hasattr(model, "n_critic_updates"):  # TRPO: each is like the other
            model.n_critic_updates = min(model.n_critic_updates, 2)
        self.callback = self.rest()

    def forward(self, samples: int) -> object:
        return _forward(self.model, samples)

    def tensors(self) -> Iterable[Any]:
        yield from self.model.policy.parameters()
        for _, optimizer in facts.optimizers_of(self.model):
            yield from state_tensors(optimizer)

    def drop_gradients(self) -> None:
        for tensor in self.model.policy.parameters():
            tensor.grad = None

    # -- beside it -------------------------------------------------------------------------------

    def beside(self) -> Beside:
        env = self.model.env.unwrapped
        light = facts.is_light(env)
        workers = env.pids if light else [p.pid for p in getattr(env, "processes", ())]
        eval_env = facts.eval_env(self.run_callback)
        saving = [c for c in self.facts().callbacks if c.kind == "save"]
        return Beside(
            make_env=self._one_env if self.env_fns else None,
            workers=tuple(workers),
            worker_envs=int(env.num_envs) if light else 0,
            evaluate=None if eval_env is None else lambda n, s: self._evaluate(eval_env, n, s),
            save=self._save if saving else None,
            saves_replay=any(c.saves_replay_buffer for c in saving),
        )

    def _one_env(self) -> object:
        env = self.env_fns[0]()
        return env, env.reset()

    def _evaluate(self, eval_env: Any, steps: int, seconds: float) -> None:
        observations = eval_env.reset()
        until = time.perf_counter() + seconds
        for _ in range(steps):
            actions, _ = self.model.predict(observations, deterministic=True)
            observations, _, _, _ = eval_env.step(actions)
            if time.perf_counter() > until:
                break

    def _save(self, folder: Path, replay: bool) -> None:
        target = folder / "saved"
        self.model.save(target.with_suffix(".zip"))
        if replay and hasattr(self.model, "save_replay_buffer"):
            self.model.save_replay_buffer(target.with_suffix(".pkl"))
        for file in folder.glob("saved*"):
            file.unlink()


def arrays_of(buffer: Any, names: Sequence[str]) -> Iterator[Any]:
    """The buffer's arrays by their paths (`observations`, `observations.image`)."""
    for name in names:
        attribute, _, key = name.partition(".")
        value = getattr(buffer, attribute)
        yield value[key] if key else value


def repeat_windows(buffer: Any, filled: int, rows: int) -> None:
    """The same in a buffer of memfit's own, which is written step by step."""
    if hasattr(buffer, "repeat"):
        buffer.repeat(filled, rows)


def _forward(model: Any, batch: int) -> Any:
    """The pass that an update differentiates, on data of no meaning, by what the policy offers."""
    import torch

    policy = model.policy
    observations = _observations(model, batch)
    shape = model.action_space.shape
    if hasattr(policy, "evaluate_actions"):
        actions = torch.zeros((batch, *shape))
        if hasattr(policy, "lstm_actor"):
            lstm = policy.lstm_actor
            state = torch.zeros((lstm.num_layers, 1, lstm.hidden_size))
            states = type(model._last_lstm_states)((state, state), (state, state))
            return policy.evaluate_actions(observations, actions, states, torch.zeros(batch))
        return policy.evaluate_actions(observations, actions)
    for name in ("q_net", "quantile_net"):
        if hasattr(policy, name):
            return getattr(policy, name)(observations)
    return policy.critic(observations, torch.zeros((batch, *shape)))


def _observations(model: Any, batch: int) -> Any:
    import torch

    sample = model.observation_space.sample()
    if isinstance(sample, dict):
        return {
            key: torch.zeros((batch, *item.shape), dtype=torch.as_tensor(item).dtype)
            for key, item in sample.items()
        }
    kind = torch.as_tensor(sample).dtype
    return torch.zeros((batch, *getattr(sample, "shape", ())), dtype=kind)
