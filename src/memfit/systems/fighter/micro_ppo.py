"""PPO whose minibatches go through the network in pieces.

A gradient step still learns from a whole minibatch: the gradients of its pieces are added up
before it. What a piece leaves for the backward pass is all that is ever held of it, so that the
peak of an update no longer grows with the minibatch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.utils import explained_variance
from torch.nn import functional

Report = Callable[[str, float], None]


class Minibatch:
    """Which samples of a rollout a gradient step learns from; they are copied piece by piece."""

    def __init__(self, indices: Any, advantages: torch.Tensor, samples: Callable[[Any], Any]):
        self.indices = indices
        self.advantages = advantages
        self._samples = samples

    def __len__(self) -> int:
        return len(self.indices)

    def pieces(self, size: int) -> Iterator[tuple[slice, Any]]:
        """The samples, at most so many at once."""
        for first in range(0, len(self), size):
            piece = slice(first, min(first + size, len(self)))
            yield piece, self._samples(self.indices[piece])


@cache
def in_pieces(base: type[RolloutBuffer]) -> type[RolloutBuffer]:
    """A rollout buffer that gives out minibatches before their samples are copied."""

    class Pieces(base):  # type: ignore[misc, valid-type]
        def _get_samples(self, batch_inds: Any, env: Any = None) -> Any:
            return Minibatch(
                batch_inds,
                self.to_torch(self.advantages[batch_inds].flatten()),
                lambda indices: super(Pieces, self)._get_samples(indices, env),
            )

    Pieces.__name__ = Pieces.__qualname__ = f"{base.__name__}InPieces"
    return Pieces


class MicroPPO(PPO):
    """PPO of the library with the same minibatches, losses and order of chance.

    With a piece as large as the minibatch every number is the same to the bit; with smaller ones
    sums are rounded in another order.
    """

    def __init__(
        self,
        *args: Any,
        micro_batch: int = 64,
        report: Report = lambda stage, share: None,
        rollout_buffer_class: type[RolloutBuffer] = RolloutBuffer,
        **kwargs: Any,
    ) -> None:
        self.micro_batch = micro_batch
        self._report = report
        kwargs["rollout_buffer_class"] = in_pieces(rollout_buffer_class)
        super().__init__(*args, **kwargs)

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "_report", "rollout_buffer_class"]

    def train(self) -> None:
        """Learn from the rollout."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        buffer = self.rollout_buffer
        minibatches = self.n_epochs * -(-buffer.buffer_size * buffer.n_envs // self.batch_size)
        losses, done = [], 0
        for _ in range(self.n_epochs):
            for minibatch in buffer.get(self.batch_size):
                losses.append(self._gradient_step(minibatch))  # type: ignore[arg-type]
                done += 1
                self._report("update", done / minibatches)
            self._n_updates += 1
        for name, values in zip(
            ("policy", "value", "entropy"), zip(*losses, strict=True), strict=True
        ):
            self.logger.record(f"train/{name}_loss", np.mean(values))
        explained = explained_variance(buffer.values.flatten(), buffer.returns.flatten())
        self.logger.record("train/explained_variance", explained)

    def _gradient_step(self, minibatch: Minibatch) -> tuple[float, float, float]:
        advantages = minibatch.advantages
        if self.normalize_advantage and len(minibatch) > 1:
            advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        self.policy.optimizer.zero_grad()
        sums = np.zeros(3)
        for piece, samples in minibatch.pieces(self.micro_batch):
            share = (piece.stop - piece.start) / len(minibatch)
            sums += share * np.array(self._piece(samples, advantages[piece], share))
        torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
        self.policy.optimizer.step()
        return float(sums[0]), float(sums[1]), float(sums[2])

    def _piece(
        self, samples: Any, advantages: torch.Tensor, share: float
    ) -> tuple[float, float, float]:
        """Add the gradients of one piece to those of the minibatch."""
        values, log_prob, entropy = self.policy.evaluate_actions(
            samples.observations, samples.actions.long().flatten()
        )
        ratio = torch.exp(log_prob - samples.old_log_prob)
        clip = self.clip_range(self._current_progress_remaining)  # type: ignore[operator]
        policy = -torch.min(
            advantages * ratio, advantages * torch.clamp(ratio, 1 - clip, 1 + clip)
        ).mean()
        value = functional.mse_loss(samples.returns, values.flatten())
        spread = -torch.mean(-log_prob if entropy is None else entropy)
        loss = policy + self.ent_coef * spread + self.vf_coef * value
        (loss * share).backward()
        return float(policy.detach()), float(value.detach()), float(spread.detach())
