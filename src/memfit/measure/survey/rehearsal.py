"""Rehearse a stable-baselines3 run in a child: its real objects, its own code, any size.

The run's own `collect_rollouts` and `train` are called, so that every copy, up-cast and temporary
of the installed version, of a custom policy or of a custom buffer is there. Only the amount of work
is cut: the env is stepped a little and what it gave is repeated into the rest of the buffer, and an
update stops after a few minibatches.
"""

from __future__ import annotations

import copy
import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from memfit.measure.survey import recorded_allocations

MINIBATCHES = 3  # per epoch: the first, one that follows another, and the last of them
EPOCHS = 2
WINDOW_STEPS = 16  # enough to see how observations move on
GRADIENT_STEPS = 6  # beyond every algorithm's policy delay, and two of the longest


@dataclass(kw_only=True)
class Work:
    """How much of the run a rehearsal does."""

    batch: int
    rows: int
    env_steps: int
    env_seconds: float
    minibatches: int = MINIBATCHES
    epochs: int = EPOCHS
    gradient_steps: int = GRADIENT_STEPS


@dataclass(kw_only=True)
class Seen:
    """What a rehearsal noticed about the update."""

    whole_rollout: bool = False
    flattened: bool = False
    batch_sizes: set[int] = field(default_factory=set)


class Sb3Rehearsal:
    """Drives one model. Nothing here survives: the child that holds it ends afterwards."""

    def __init__(self, model: Any, arrays: Sequence[str], setup: Callable[[], Any]) -> None:
        self.model = model
        self.arrays = arrays
        self.on_policy = hasattr(model, "rollout_buffer")
        self.seen = Seen()
        self.deadline = float("inf")
        self.on_first_minibatch: Callable[[], None] = lambda: None
        self.collecting = False  # whose code is at fault if it raises: the env's or ours
        model.tensorboard_log = None
        model.verbose = 0
        if self.on_policy and getattr(model, "target_kl", None) and hasattr(model, "n_epochs"):
            model.target_kl = 1e9  # an update that ends early would hide its peak
        if hasattr(model, "n_critic_updates"):  # TRPO: each is like the other
            model.n_critic_updates = min(model.n_critic_updates, 2)
        self.callback = setup()

    # -- the rollout ---------------------------------------------------------------------------

    def small_rollout(self, rows: int) -> Any:
        """A buffer like the run's own, with fewer rows."""
        buffer = copy.copy(self.model.rollout_buffer)
        buffer.buffer_size = rows
        if hasattr(buffer, "hidden_state_shape"):
            buffer.hidden_state_shape = (rows, *buffer.hidden_state_shape[1:])
        buffer.reset()
        return buffer

    def collect(self, buffer: Any, work: Work) -> None:
        """Step the env a little with the real policy, and repeat what came into every row."""
        rows = buffer.buffer_size
        started = time.perf_counter()
        steps = min(rows, 2)
        self._collect_steps(buffer, steps)
        each = (time.perf_counter() - started) / steps
        more = min(rows, work.env_steps, int(work.env_seconds / max(each, 1e-6)))
        if more > steps:
            steps = more
            self.model._last_episode_starts[:] = True  # as a run's first rollout begins
            self._collect_steps(buffer, steps)
        repeat_rows(arrays_of(buffer, self.arrays), steps, rows)
        repeat_windows(buffer, steps, rows)
        buffer.pos = rows
        buffer.full = True

    def find_windows(self) -> None:
        """Let a buffer of memfit's own find what it can store once, in a few real steps."""
        if self.on_policy and hasattr(self.model.rollout_buffer, "tracks"):
            buffer = self.model.rollout_buffer
            started = time.perf_counter()
            self._collect_steps(buffer, min(buffer.buffer_size, 2))
            each = (time.perf_counter() - started) / 2
            steps = min(buffer.buffer_size, WINDOW_STEPS, int(1.0 / max(each, 1e-6)))
            if steps > 2:
                self._collect_steps(buffer, steps)
        elif not self.on_policy and hasattr(self.model.replay_buffer, "tracks"):
            self.step_env(WINDOW_STEPS, seconds=1.0)

    def _collect_steps(self, buffer: Any, steps: int) -> None:
        self.collecting = True
        self.model.collect_rollouts(self.model.env, self.callback, buffer, n_rollout_steps=steps)
        self.collecting = False

    def step_env(self, steps: int, seconds: float) -> None:
        """Put a few real transitions into an off-policy run's replay buffer."""
        from stable_baselines3.common.type_aliases import TrainFreq, TrainFrequencyUnit

        model = self.model
        deadline = time.perf_counter() + seconds
        for done in range(steps):
            self.collecting = True
            model.collect_rollouts(
                model.env,
                train_freq=TrainFreq(1, TrainFrequencyUnit.STEP),
                action_noise=model.action_noise,
                callback=self.callback,
                learning_starts=0,
                replay_buffer=model.replay_buffer,
                log_interval=None,
            )
            self.collecting = False
            if done >= 3 and time.perf_counter() > deadline:
                break
        if hasattr(model.replay_buffer, "truncate_last_trajectory"):
            model.replay_buffer.truncate_last_trajectory()

    # -- the update ----------------------------------------------------------------------------

    def update(self, buffer: Any, work: Work, *, marked: bool = False) -> None:
        """One update of the run's own code, on a batch of `work.batch`."""
        model = self.model
        if self.on_policy:
            with self._as_rollout(buffer, work, marked):
                model.train()
        else:
            with self._marked_sampling(marked):
                model.train(gradient_steps=work.gradient_steps, batch_size=work.batch)

    @contextmanager
    def _as_rollout(self, buffer: Any, work: Work, marked: bool) -> Iterator[None]:
        model = self.model
        kept = {
            name: getattr(model, name)
            for name in ("rollout_buffer", "batch_size", "n_epochs")
            if hasattr(model, name)
        }
        own_get, own_gather = buffer.get, buffer._get_samples
        own_flatten = buffer.swap_and_flatten

        def get(batch_size: int | None = None) -> Any:
            if batch_size is None or batch_size >= buffer.buffer_size * buffer.n_envs:
                self.seen.whole_rollout |= batch_size is None
            else:
                self.seen.batch_sizes.add(batch_size)
            return self._few(own_get(batch_size), work.minibatches)

        def flatten(array: Any) -> Any:
            self.seen.flattened = True
            return own_flatten(array)

        buffer.get, buffer.swap_and_flatten = get, flatten
        if marked:
            buffer._get_samples = marked_call(own_gather)
        model.rollout_buffer = buffer
        if "batch_size" in kept:
            # TRPO's policy takes the whole rollout, and only its critic takes minibatches.
            model.batch_size = min(kept["batch_size"], work.batch)
        if "n_epochs" in kept:
            model.n_epochs = min(kept["n_epochs"], work.epochs)
        try:
            yield
        finally:
            for name in ("get", "swap_and_flatten", "_get_samples"):
                buffer.__dict__.pop(name, None)
            for name, value in kept.items():
                setattr(model, name, value)

    def _few(self, minibatches: Any, most: int) -> Iterator[Any]:
        """The first minibatches, fewer where time runs out; none is held here."""
        for number in range(most):
            for minibatch in itertools.islice(minibatches, 1):
                if number == 0:
                    self.on_first_minibatch()
                yield minibatch
                del minibatch
            if time.perf_counter() > self.deadline:
                return

    @contextmanager
    def _marked_sampling(self, marked: bool) -> Iterator[None]:
        buffer = self.model.replay_buffer
        if marked:
            buffer.sample = marked_call(buffer.sample)
        try:
            yield
        finally:
            buffer.__dict__.pop("sample", None)

    def gather_once(self, buffer: Any, batch: int) -> None:
        """One minibatch's host-side gathering, as the update does it."""
        if self.on_policy:
            next(iter(buffer.get(batch)))
        else:
            buffer.sample(batch, env=self.model._vec_normalize_env)

    def drop_gradients(self) -> None:
        """Release every gradient, as the run's next `zero_grad` would."""
        for tensor in self.model.policy.parameters():
            tensor.grad = None

    def tensors(self) -> Iterator[Any]:
        """What the policy and its optimizers hold from one update to the next."""
        policy = self.model.policy
        yield from policy.parameters()
        for module in policy.modules():
            if (optimizer := getattr(module, "optimizer", None)) is not None:
                for state in optimizer.state.values():
                    yield from (t for t in state.values() if hasattr(t, "untyped_storage"))


def marked_call(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, noting where it starts and ends in a recorded sequence."""

    def call(*args: Any, **kwargs: Any) -> Any:
        recorded_allocations.mark(recorded_allocations.GATHER)
        result = function(*args, **kwargs)
        recorded_allocations.mark(recorded_allocations.GATHERED)
        return result

    return call


def arrays_of(buffer: Any, names: Sequence[str]) -> Iterator[Any]:
    """The buffer's arrays by their paths (`observations`, `observations.image`)."""
    for name in names:
        attribute, _, key = name.partition(".")
        value = getattr(buffer, attribute)
        yield value[key] if key else value


def repeat_rows(arrays: Iterable[Any], filled: int, rows: int) -> None:
    """Write rows `filled` to `rows` with copies of the filled ones: their pages become resident."""
    for array in arrays:
        for start in range(filled, rows, filled):
            stop = min(start + filled, rows)
            array[start:stop] = array[: stop - start]


def repeat_windows(buffer: Any, filled: int, rows: int) -> None:
    """The same in a buffer of memfit's own, which is written step by step."""
    if hasattr(buffer, "repeat"):
        buffer.repeat(filled, rows)


def repeat_episodes(buffer: Any, filled: int, rows: int) -> None:
    """Let each copy of the filled rows be episodes of its own, where a buffer knows its episodes.

    Those of a copy that is cut off at the end do not count.
    """
    if not hasattr(buffer, "ep_start"):
        return
    for start in range(filled, rows, filled):
        stop = min(start + filled, rows)
        buffer.ep_start[start:stop] = buffer.ep_start[: stop - start] + start
        if stop - start < filled:
            buffer.ep_length[start:stop] = 0
