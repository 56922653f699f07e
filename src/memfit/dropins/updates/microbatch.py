"""PPO of stable-baselines3 whose update goes through each minibatch piece by piece.

    model = MicroBatchPPO("CnnPolicy", env, batch_size=2048, micro_batch_size=128)

The gradient is that of the whole minibatch: the same samples, advantages normalised over all of
them, one step. Only the order of sums differs, so numbers agree to rounding, not to the bit.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3 import PPO
from stable_baselines3.common.utils import explained_variance
from torch.nn import functional

from memfit.dropins.updates.accumulation import accumulate
from memfit.dropins.updates.probe import fitting, has_batch_norm, measure
from memfit.dropins.updates.size import checked_limit, checked_size
from memfit.errors import Unsupported, UsageError
from memfit.units import format_bytes

Indices = NDArray[np.int64]
Clips = tuple[float, float | None]  # of the policy's ratio, and of values
_LOG = logging.getLogger("memfit.dropins")

# With fewer samples at once, most of the time goes by between them.
_FEW = 8

# What is known of a micro-batch, in this order.
NUMBERS = ("policy_gradient_loss", "value_loss", "entropy_loss", "clip_fraction", "kl", "loss")


class MicroBatchPPO(PPO):
    """PPO with a cap on the memory of its update.

    `micro_batch_size` is the number of samples that go through the network at once. Or give
    `memory_limit`, in bytes or as `"2GiB"`: the first update then measures what a sample takes and
    chooses the largest piece with which this process stays within it. With neither, or with a
    micro-batch as large as the minibatch, it is PPO, to the bit.
    """

    def __init__(
        self,
        *args: Any,
        micro_batch_size: int | None = None,
        memory_limit: int | str | None = None,
        **kwargs: Any,
    ) -> None:
        self.micro_batch_size = micro_batch_size
        self.memory_limit = memory_limit
        self._fitted: tuple[tuple[int, int], int] | None = None
        self._told_of_batch_norm = False
        self._check_sizes()
        super().__init__(*args, **kwargs)

    @property
    def samples_at_once(self) -> int | None:
        """The micro-batch in use; None where a limit is given and no update has been yet."""
        if self.micro_batch_size is not None:
            return min(checked_size(self.micro_batch_size), self.batch_size)
        if self.memory_limit is None:
            return self.batch_size
        return None if self._fitted is None else self._fitted[1]

    def train(self) -> None:
        """Update the policy from the rollout, as PPO does."""
        self._check_sizes()
        self._look_for_batch_norm()
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        progress = self._current_progress_remaining
        clip_range_vf = None if self.clip_range_vf is None else self.clip_range_vf(progress)  # type: ignore[operator]
        clips = self.clip_range(progress), clip_range_vf  # type: ignore[operator]
        taken: list[dict[str, float]] = []
        kls: list[Any] = []
        stop = False
        for epoch in range(self.n_epochs):
            kls = []
            for indices in self._minibatches():
                found = self._accumulate(indices, self._samples_at_once(clips), clips)
                taken.append(found)
                kls.append(np.float32(found["kl"]))
                if self.target_kl is not None and kls[-1] > 1.5 * self.target_kl:
                    stop = True
                    self.policy.optimizer.zero_grad()
                    if self.verbose >= 1:
                        print(f"Early stopping at step {epoch}: kl {kls[-1]:.2f}")  # noqa: T201
                    break
                torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
                self.policy.optimizer.step()
            self._n_updates += 1
            if stop:
                break
        self._log(taken, kls, clips)

    def _accumulate(self, indices: Indices, size: int, clips: Clips) -> dict[str, float]:
        """Leave the gradient of a whole minibatch in the parameters; give its numbers."""
        buffer = self.rollout_buffer
        advantages = buffer.to_torch(buffer.advantages[indices].flatten())
        if self.normalize_advantage and len(indices) > 1:
            advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        self.policy.optimizer.zero_grad()
        pieces = (indices, advantages)
        _, found = accumulate(lambda p: self._losses(p[0], p[1], clips), pieces, size)
        return dict(zip(NUMBERS, found["numbers"].tolist(), strict=True))

    def _losses(
        self, indices: Indices, advantages: torch.Tensor, clips: Clips
    ) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """The loss of one micro-batch, and all its numbers, means over its samples."""
        clip_range, clip_range_vf = clips
        data = self.rollout_buffer._get_samples(indices)
        actions = data.actions
        if isinstance(self.action_space, spaces.Discrete):
            actions = actions.long().flatten()
        values, log_prob, entropy = self.policy.evaluate_actions(data.observations, actions)
        values = values.flatten()
        ratio = torch.exp(log_prob - data.old_log_prob)
        clipped = torch.clamp(ratio, 1 - clip_range, 1 + clip_range)
        policy_loss = -torch.min(advantages * ratio, advantages * clipped).mean()
        if clip_range_vf is not None:
            moved = torch.clamp(values - data.old_values, -clip_range_vf, clip_range_vf)
            values = data.old_values + moved
        value_loss = functional.mse_loss(data.returns, values)
        # Some distributions have no entropy in closed form.
        entropy_loss = -torch.mean(-log_prob if entropy is None else entropy)
        loss = policy_loss + self.ent_coef * entropy_loss + self.vf_coef * value_loss
        with torch.no_grad():
            log_ratio = log_prob - data.old_log_prob
            kl = torch.mean((torch.exp(log_ratio) - 1) - log_ratio)
            clip_fraction = torch.mean((torch.abs(ratio - 1) > clip_range).float())
        numbers = torch.stack([policy_loss, value_loss, entropy_loss, clip_fraction, kl, loss])
        return loss, {"numbers": numbers}

    def _minibatches(self) -> Iterator[Indices]:
        """The indices of an epoch's minibatches.

        The buffer's own get() draws them, so that the order and the use of random numbers are the
        library's; only the samples are not gathered yet.
        """
        buffer: Any = self.rollout_buffer
        buffer._get_samples = lambda indices, env=None: indices
        try:
            minibatches = list(buffer.get(self.batch_size))
        finally:
            del buffer._get_samples
        if not all(isinstance(found, np.ndarray) and found.ndim == 1 for found in minibatches):
            raise Unsupported(
                f"{type(buffer).__name__} does not gather minibatches by indices: use the "
                "library's RolloutBuffer or memfit's WindowRolloutBuffer"
            )
        yield from minibatches

    def _samples_at_once(self, clips: Clips) -> int:
        if self.memory_limit is None:
            return self.samples_at_once or self.batch_size
        limit = checked_limit(self.memory_limit)
        if self._fitted is None or self._fitted[0] != (limit, self.batch_size):
            self._fitted = (limit, self.batch_size), self._fit(limit, clips)
        return self._fitted[1]

    def _fit(self, limit: int, clips: Clips) -> int:
        """Measure small updates on the first samples of the rollout, then choose."""
        buffer = self.rollout_buffer
        batch = min(self.batch_size, buffer.buffer_size * buffer.n_envs)

        def update(samples: int) -> None:
            indices = np.arange(samples)
            advantages = buffer.to_torch(buffer.advantages[indices].flatten())
            self._losses(indices, advantages, clips)[0].backward()

        took = measure(update, batch, [self.policy], limit=limit, to_come=self._state_to_come())
        size = fitting(took, batch, limit)
        _LOG.info(
            "micro_batch_size %d of batch_size %d: the update then peaks at about %s, within %s",
            size,
            batch,
            format_bytes(took.peak(size)),
            format_bytes(limit),
        )
        if size < min(batch, _FEW):
            _LOG.warning(
                "only %d of %d samples at once are within %s: the update takes much longer. Give a "
                "larger limit, or make the rollout or the network smaller",
                size,
                batch,
                format_bytes(limit),
            )
        return size

    def _state_to_come(self) -> int:
        """What the optimizer's first step will keep; two numbers for each parameter, as Adam."""
        if self.policy.optimizer.state:
            return 0
        return 2 * sum(p.nbytes for p in self.policy.parameters() if p.requires_grad)

    def _check_sizes(self) -> None:
        if self.micro_batch_size is not None:
            checked_size(self.micro_batch_size)
        if self.memory_limit is not None:
            checked_limit(self.memory_limit)
            if self.micro_batch_size is not None:
                raise UsageError(
                    "micro_batch_size and memory_limit both say how large a micro-batch is: "
                    "give one of them"
                )

    def _look_for_batch_norm(self) -> None:
        if self._told_of_batch_norm or self.samples_at_once == self.batch_size:
            return
        if has_batch_norm([self.policy]):
            _LOG.warning(
                "the policy has batch norm, whose statistics are then those of each micro-batch: "
                "the gradient is not that of PPO. Use layer or group norm for the same gradient"
            )
        self._told_of_batch_norm = True

    def _log(self, taken: list[dict[str, float]], kls: list[Any], clips: Clips) -> None:
        values, returns = self.rollout_buffer.values, self.rollout_buffer.returns
        for name in ("entropy_loss", "policy_gradient_loss", "value_loss", "clip_fraction"):
            self.logger.record(f"train/{name}", np.mean([found[name] for found in taken]))
        self.logger.record("train/approx_kl", np.mean(kls))
        self.logger.record("train/loss", taken[-1]["loss"])
        explained = explained_variance(values.flatten(), returns.flatten())
        self.logger.record("train/explained_variance", explained)
        if hasattr(self.policy, "log_std"):
            std = torch.exp(self.policy.log_std).mean().item()
            self.logger.record("train/std", std)
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self.logger.record("train/clip_range", clips[0])
        if clips[1] is not None:
            self.logger.record("train/clip_range_vf", clips[1])

    def _excluded_save_params(self) -> list[str]:
        # Another process has another amount resident: it measures anew.
        return [*super()._excluded_save_params(), "_fitted"]
