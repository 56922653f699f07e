"""On-policy trainings of stable-baselines3: rollouts of any length, few minibatches."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from memfit.libraries.driven import few, repeat_rows, state_tensors
from memfit.libraries.sb3.facts import optimizers_of, rollout_arrays
from memfit.libraries.sb3.training import (
    WINDOW_SECONDS,
    WINDOW_STEPS,
    Sb3Training,
    arrays_of,
    repeat_windows,
)
from memfit.model.busy_clock import BusyClock
from memfit.model.training import Mark, Work

# Recurrent updates depend on how long sequences are: real steps only, which take longer.
RECURRENT_SECONDS, RECURRENT_REHEARSAL_SECONDS = 0.5, 3.0


class OnPolicy(Sb3Training):
    """A model with a rollout buffer."""

    def __init__(self, model: Any, **how: Any) -> None:
        super().__init__(model, **how)
        self.recurrent = self.follows_episodes = hasattr(model, "_last_lstm_states")
        self.recorded_samples = 2 * int(model.n_steps) if self.recurrent else 0
        self.buffer: Any = None
        self.collected: Any = None  # many real steps of a recurrent run: taken once, used again

    def prepare(self) -> None:
        super().prepare()
        buffer = self.model.rollout_buffer
        if hasattr(buffer, "tracks"):  # memfit's own: let it find what it can store once
            self._collect_real(buffer, WINDOW_STEPS, WINDOW_SECONDS)

    # -- the rollout -----------------------------------------------------------------------------

    def rows(self, work: Work) -> int:
        """The rows of the buffer for this much work."""
        steps, envs = int(work.knobs["n_steps"]), int(self.model.n_envs)
        if work.rehearsal or self.recurrent:
            return steps
        if self.seen.whole_rollout:
            return max(1, -(-work.batch // envs))
        return min(steps, max(2, -(-work.minibatches * work.batch // envs)))

    def samples_of(self, work: Work) -> int:
        if not self.seen.whole_rollout:
            return work.batch
        return self.rows(work) * int(self.model.n_envs)

    def collect(self, work: Work) -> None:
        if self.collected is not None:
            self.buffer = copy.deepcopy(self.collected)
            return
        rows = self.rows(work)
        self.buffer = self._buffer(rows, work)
        steps, seconds = min(rows, work.env_steps), work.env_seconds
        if self.recurrent:
            steps = rows
            seconds = RECURRENT_REHEARSAL_SECONDS if work.rehearsal else RECURRENT_SECONDS
        done = self._collect_real(self.buffer, steps, seconds)
        repeat_rows(arrays_of(self.buffer, self.arrays_of_buffer), done, rows)
        repeat_windows(self.buffer, done, rows)
        self.buffer.pos = rows
        self.buffer.full = True
        if self.recurrent and not work.rehearsal:
            self.collected = copy.deepcopy(self.buffer)

    def _buffer(self, rows: int, work: Work) -> Any:
        """The run's own buffer, or one like it with fewer rows."""
        own = self.model.rollout_buffer
        if work.rehearsal and rows == own.buffer_size:
            return own
        if work.rehearsal and self.buffer is not None and rows == self.buffer.buffer_size:
            return self.buffer
        buffer = copy.copy(own)
        buffer.buffer_size = rows
        if hasattr(buffer, "hidden_state_shape"):
            buffer.hidden_state_shape = (rows, *buffer.hidden_state_shape[1:])
        buffer.reset()
        if work.rehearsal:
            self.model.rollout_buffer = buffer  # the larger one goes
        return buffer

    def _collect_real(self, buffer: Any, most: int, seconds: float) -> int:
        """Step the env with the real policy, twice at least; how many steps there were."""
        clock = BusyClock()
        steps = min(buffer.buffer_size, 2)
        self._collect_steps(buffer, steps)
        each = clock.seconds() / steps
        more = min(buffer.buffer_size, most, int(seconds / max(each, 1e-6)))
        if more > steps:
            steps = more
            self.model._last_episode_starts[:] = True  # as a run's first rollout begins
            self._collect_steps(buffer, steps)
        return int(steps)

    def _collect_steps(self, buffer: Any, steps: int) -> None:
        self.running_its_own = True
        self.model.collect_rollouts(self.model.env, self.callback, buffer, n_rollout_steps=steps)
        self.running_its_own = False

    # -- the update ------------------------------------------------------------------------------

    def update(self, work: Work, mark: Mark) -> None:
        with self._as_rollout(self.buffer, work, mark):
            self.model.train()

    @contextmanager
    def _as_rollout(self, buffer: Any, work: Work, mark: Mark) -> Iterator[None]:
        model = self.model
        kept = {
            name: getattr(model, name)
            for name in ("rollout_buffer", "batch_size", "n_epochs")
            if hasattr(model, name)
        }
        own_get, own_flatten = buffer.get, buffer.swap_and_flatten

        def get(batch_size: int | None = None) -> Any:
            self.seen.whole_rollout |= batch_size is None
            return few(own_get(batch_size), work)

        def flatten(array: Any) -> Any:
            self.seen.flattened = True
            return own_flatten(array)

        buffer.get, buffer.swap_and_flatten = get, flatten
        model.rollout_buffer = buffer
        if "batch_size" in kept:
            model.batch_size = self._minibatch(kept["batch_size"], work)
        if "n_epochs" in kept:
            model.n_epochs = min(kept["n_epochs"], work.epochs)
        try:
            yield
        finally:
            for name in ("get", "swap_and_flatten"):
                buffer.__dict__.pop(name, None)
            for name, value in kept.items():
                setattr(model, name, value)

    def _minibatch(self, own: int, work: Work) -> int:
        """The size of minibatches: TRPO's critic takes as large a part of a rollout as in the run.

        Its policy takes the whole rollout.
        """
        if work.rehearsal or not self.seen.whole_rollout:
            return min(own, work.batch)
        return max(1, own * self.rows(work) // int(work.knobs["n_steps"]))

    def padding(self, recorded: int, samples: int) -> float:
        if not self.recurrent:
            return 1.0
        starts = self.collected.episode_starts
        return max(1.0, padded_share(starts, samples) / padded_share(starts, recorded))

    # -- watched while it trains by itself -------------------------------------------------------

    def marks(self) -> Iterable[tuple[Any, str, str]]:
        yield self.model, "collect_rollouts", "rollout"
        yield self.model, "train", "update"

    def arrays(self) -> Mapping[str, Iterable[Any]]:
        names = [array.name for array in rollout_arrays(self.model)]
        paths = [name.partition(".")[2] for name in names]
        arrays = arrays_of(self.model.rollout_buffer, paths)
        tensors = list(self.model.policy.parameters())
        return {
            **{name: [array] for name, array in zip(names, arrays, strict=True)},
            "policy.parameters": tensors,
            "policy.gradients": [t.grad for t in tensors if t.grad is not None],
            "policy.optimizer": [t for _, o in optimizers_of(self.model) for t in state_tensors(o)],
        }


def padded_share(episode_starts: Any, batch: int) -> float:
    """The largest padded minibatch of a recurrent rollout, as a multiple of the batch size.

    A minibatch is a stretch of the envs' steps one after the other, cut where an episode or an
    env begins, and every piece is padded to the longest.
    """
    rows, envs = episode_starts.shape
    begins = [bool(episode_starts[t, e]) or t == 0 for e in range(envs) for t in range(rows)]
    largest = 1.0
    for first in range(0, len(begins), max(1, batch // 7)):  # the split is drawn anew each time
        piece = begins[first : first + batch]
        marks = [0, *(i for i, begin in enumerate(piece) if begin and i), len(piece)]
        lengths = [b - a for a, b in pairwise(marks)]
        largest = max(largest, len(lengths) * max(lengths) / len(piece))
    return largest
