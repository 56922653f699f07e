"""Survey a model that is about to learn: what it holds, and what its updates will add.

Runs in the disposable child, where the model is. The stages are small on purpose: a few env steps,
one small update to see what first use costs, two recorded ones to learn the sequence of
allocations, and a replay of that sequence at full size that touches no memory.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from memfit.measure import allocations, trace
from memfit.measure.allocations import Event, Sequences
from memfit.measure.proc import PeakMeter
from memfit.measure.rehearsal import Sb3Rehearsal, Work
from memfit.measure.replay import Alloc, Free, Growth, Malloc, Moment, Step, replay_often
from memfit.model import NO_SLOPE, Slope

# A small update should cost little memory and time, yet be large enough that kernels choose the
# same ways of working as at full size.
SMALL_BYTES = 4 * 2**20
SMALL_SAMPLES = 64
WARM_SAMPLES = 16
MINIBATCHES = 2
ITERATIONS = 6


@dataclass(kw_only=True)
class Survey:
    """What the survey found; every number is bytes."""

    stopped: int
    reset: int = 0
    warm: int = 0
    retained: int = 0
    batch: int = 0
    whole_rollout: bool = False
    flattened: bool = False
    matched_share: float = 1.0
    assumed: bool = False
    activations: Slope | None = None
    live: Slope = NO_SLOPE
    gather: Slope = NO_SLOPE
    growth: dict[str, Slope] = field(default_factory=dict)
    growth_spread: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


class Surveyor:
    """Takes a model through the stages."""

    def __init__(self, model: Any, rehearsal: Sb3Rehearsal, stopped: int) -> None:
        self.model = model
        self.rehearsal = rehearsal
        self.meter = PeakMeter()
        self.found = Survey(stopped=stopped)
        self.malloc = Malloc()
        self.rollout = int(model.n_steps) * int(model.n_envs) if rehearsal.on_policy else 0

    def run(self, arrays: Sequence[tuple[str, int]]) -> Survey:
        """All stages; `arrays` are the run's buffer arrays with their full sizes."""
        found = self.found
        found.batch = found.batch or self._batch()
        try:
            self._warm_up()
            # From here on the survey's own tools take memory, so nothing is read any more.
            found.activations = trace.activations(self.model, found.batch)
            small, large = self._small_batches(found.batch)
            self._record(small, large, found.batch, arrays)
        except Exception as error:  # noqa: BLE001 - custom policies, buffers and envs may refuse
            self._assume(error)
        return found

    def _warm_up(self) -> None:
        """Step the env a little and update once, to see what first use costs."""
        found = self.found
        free_before = self.malloc.free_bytes()
        if not self.rehearsal.on_policy:
            self.rehearsal.step_env(steps=8, seconds=0.3)
        self._update(min(found.batch, WARM_SAMPLES))
        if self.rehearsal.seen.whole_rollout and self.rollout:
            found.batch = self.rollout
        found.whole_rollout = self.rehearsal.seen.whole_rollout
        found.flattened = self.rehearsal.seen.flattened
        self.rehearsal.drop_gradients()
        gc.collect()
        found.warm = self.meter.now()
        found.retained = max(0, self.malloc.free_bytes() - free_before)

    def _assume(self, error: Exception) -> None:
        """Where a small update cannot be run: twice what the policy saves for its backward pass."""
        found = self.found
        found.assumed = True
        found.warm = found.warm or self.meter.now()
        found.flattened = self.rehearsal.on_policy
        if found.activations is None:
            found.activations = trace.activations(self.model, found.batch)
        saved = found.activations or Slope(fixed=0, per_unit=2**20)
        found.live = Slope(fixed=2 * saved.fixed, per_unit=2 * saved.per_unit)
        found.growth = {}
        found.notes.append(
            f"a small update could not be run ({type(error).__name__}: {error}): what updates add "
            "is assumed; try --probe"
        )

    def _batch(self) -> int:
        batch = getattr(self.model, "batch_size", None) or self.rollout
        return min(int(batch), self.rollout) if self.rollout else int(batch)

    def _small_batches(self, batch: int) -> tuple[int, int]:
        """Two batch sizes for recording; the larger is the run's own where that is cheap."""
        traced = self.found.activations
        each = max(1, traced.per_unit) if traced else 2**20
        large = min(batch, max(4, min(SMALL_SAMPLES, SMALL_BYTES // each)))
        large = max(2, large)
        return max(1, large // 2), large

    def _work(self, batch: int) -> Work:
        envs = int(self.model.n_envs)
        rows = min(int(getattr(self.model, "n_steps", 1)), max(2, -(-MINIBATCHES * batch // envs)))
        if self.rehearsal.seen.whole_rollout:
            rows = max(1, -(-batch // envs))
        return Work(
            batch=batch,
            rows=rows,
            env_steps=self._env_steps(rows),
            env_seconds=0.25,
            minibatches=MINIBATCHES,
            epochs=1,
        )

    def _env_steps(self, rows: int) -> int:
        # Recurrent batches are padded to the longest episode: repeat as little as time allows.
        return rows if hasattr(self.model, "_last_lstm_states") else min(rows, 8)

    def _update(self, batch: int) -> None:
        work = self._work(batch)
        buffer = None
        if self.rehearsal.on_policy:
            buffer = self.rehearsal.small_rollout(work.rows)
            self.rehearsal.collect(buffer, work)
        if not self.found.reset:
            self.found.reset = self.meter.now()
        self.rehearsal.update(buffer, work)

    def _record(
        self, small: int, large: int, batch: int, arrays: Sequence[tuple[str, int]]
    ) -> None:
        sequences = []
        for size in (small, large):
            work = self._work(size)
            buffer = None
            if self.rehearsal.on_policy:
                buffer = self.rehearsal.small_rollout(work.rows)
                self.rehearsal.collect(buffer, work)
            sequences.append(allocations.record(partial(self._recorded, buffer, work)))
            self.rehearsal.drop_gradients()
        envs = int(self.model.n_envs)
        if self.rehearsal.seen.whole_rollout:  # whole rows only
            small, large = (max(1, -(-n // envs)) * envs for n in (small, large))
        recorded = Sequences(
            small=sequences[0], large=sequences[1], small_batch=small, large_batch=large
        )
        found = self.found
        found.matched_share = recorded.matched_share
        found.gather = self._gather_bytes(small, large)
        found.live = _slope(batch, lambda b: allocations.live_peak(recorded.at(b)))
        prints = [self._replay(recorded, b, arrays) for b in (batch, 2 * batch)]
        for moment in prints[0]:
            one, two = prints[0][moment], prints[1][moment]
            found.growth[moment] = _line(batch, one.likely, two.likely)
            found.growth_spread[moment] = one.most - one.likely

    def _recorded(self, buffer: Any, work: Work) -> None:
        self.rehearsal.drop_gradients()
        self.rehearsal.update(buffer, work, marked=True)

    def _gather_bytes(self, small: int, large: int) -> Slope:
        """Host-side bytes of one minibatch's gathering, copies and up-casts included."""
        peaks = []
        for size in (small, large):
            buffer = self.model.replay_buffer if not self.rehearsal.on_policy else None
            if self.rehearsal.on_policy:
                work = self._work(size)
                buffer = self.rehearsal.small_rollout(work.rows)
                self.rehearsal.collect(buffer, work)
                self.rehearsal.gather_once(buffer, size)  # flattens
            tracemalloc.start()
            try:
                self.rehearsal.gather_once(buffer, size)
                peaks.append(tracemalloc.get_traced_memory()[1])
            finally:
                tracemalloc.stop()
        per_unit = max(0, (peaks[1] - peaks[0]) // max(1, large - small))
        return Slope(fixed=max(0, peaks[1] - per_unit * large), per_unit=per_unit)

    def _replay(
        self, recorded: Sequences, batch: int, arrays: Sequence[tuple[str, int]]
    ) -> dict[str, Growth]:
        gather = self.found.gather.at(batch)
        events = recorded.at(batch)
        if self.rehearsal.on_policy:
            flattened = self.found.flattened and int(self.model.n_envs) > 1
            steps = on_policy_steps(arrays, events, gather, self.rollout, flattened)
        else:
            steps = off_policy_steps(events, gather)
        return replay_often(list(steps))


def on_policy_steps(
    arrays: Sequence[tuple[str, int]],
    events: Sequence[Event],
    gather: int,
    rollout: int,
    flattened: bool,
) -> Iterator[Step]:
    """What a run of collect, flatten and minibatches asks of malloc, in its order."""
    held: dict[str, object] = {}
    for iteration in range(ITERATIONS):
        yield Moment("rollout")
        for name, size in arrays:
            yield Alloc(("rows", name, iteration), size)
            if name in held:
                yield Free(held[name])
            held[name] = ("rows", name, iteration)
        if flattened:
            yield Moment("update.flatten")
            for name, size in arrays:
                yield Alloc(("flat", name, iteration), size)
                yield Free(held[name])
                held[name] = ("flat", name, iteration)
        yield Moment("update.minibatch")
        yield Alloc(("indices", iteration), 8 * rollout)
        yield from update_steps(events, gather, iteration)
        yield Free(("indices", iteration))


def off_policy_steps(events: Sequence[Event], gather: int) -> Iterator[Step]:
    """Gradient steps on sampled minibatches; the replay buffer is there already."""
    for iteration in range(ITERATIONS):
        yield Moment("rollout")
        yield Moment("update.minibatch")
        yield from update_steps(events, gather, iteration)
    yield Moment("rollout")


def update_steps(events: Sequence[Event], gather: int, iteration: int) -> Iterator[Step]:
    """One recorded update; what it leaves alive is released at its end, as the next would."""
    live: set[int] = set()
    gathering = 0
    for event in events:
        if event.marker == "gather":
            gathering += 1
            yield Alloc(("gather", iteration, gathering), gather)
        elif event.marker == "gathered":
            yield Free(("gather", iteration, gathering))
        if event.free:
            live.discard(event.block)
            yield Free((iteration, event.block))
        else:
            live.add(event.block)
            yield Alloc((iteration, event.block), event.bytes, aligned=True)
    for block in sorted(live):
        yield Free((iteration, block))


def _slope(batch: int, bytes_at: Any) -> Slope:
    return _line(batch, bytes_at(batch), bytes_at(2 * batch))


def _line(batch: int, at_one: int, at_two: int) -> Slope:
    """The line through a value at `batch` and one at twice that."""
    per_unit = (at_two - at_one) // batch
    return Slope(fixed=at_one - per_unit * batch, per_unit=per_unit)
