"""Survey a model that is about to learn: what it holds, and what its updates will add.

Runs in the disposable child, where the model is. The stages are small on purpose: a few env steps,
one small update to see what first use costs, two recorded ones to learn the sequence of
allocations, and a replay of that sequence at full size that touches no memory.
"""

from __future__ import annotations

import copy
import gc
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

from memfit.measure import allocations, trace
from memfit.measure.allocations import Event, Sequences
from memfit.measure.proc import PeakMeter
from memfit.measure.rehearsal import Sb3Rehearsal, Work, arrays_of
from memfit.measure.replay import SEEDS, Alloc, Free, Growth, Malloc, Moment, Step, replay_often
from memfit.model import NO_SLOPE, Slope

# A small update should cost little memory and time, yet be large enough that kernels choose the
# same ways of working as at full size.
SMALL_BYTES = 4 * 2**20
SMALL_SAMPLES = 64
WARM_SAMPLES = 16
MINIBATCHES = 2
# An update at the run's own batch size is better than any replay of it, where it is this cheap.
REAL_SECONDS = 0.3
REAL_BYTES = 64 * 2**20
ITERATIONS = 6


@dataclass(kw_only=True)
class Survey:
    """What the survey found; every number is bytes."""

    stopped: int
    reset: int = 0
    warm: int = 0
    retained: int = 0
    seen: int = 0
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
        self.recurrent = hasattr(model, "_last_lstm_states")
        self._kept: Any = None
        self._since_warm = 0
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
        except Exception as error:  # custom policies and buffers may refuse
            if self.rehearsal.collecting:
                raise  # the run itself would fail there
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
        held = self.malloc.footprint()
        self._real_batch()
        # Replays start from here, their growth counts from `warm`.
        self._since_warm = self.malloc.footprint() - held

    def _real_batch(self) -> None:
        """Where that is a matter of tenths of a second, update at the run's own batch size."""
        found = self.found
        sample = min(found.batch, WARM_SAMPLES)
        started = time.process_time()  # a busy machine must not change the plan
        self._update(sample)
        seconds = (time.process_time() - started) * found.batch / sample
        work = self._work(found.batch)
        held = self._row_bytes() * work.rows
        # Recurrent kernels take memory of their own that no recording sees: worth more time.
        if seconds > (6 if self.recurrent else 1) * REAL_SECONDS or held > REAL_BYTES:
            return
        for _ in range(3):
            self.meter.start()
            self._update(found.batch)
            found.seen = max(found.seen, self.meter.peak() - found.warm - held)

    def _iterations(self) -> int:
        """How many rollouts to replay: not more than the run has."""
        planned = -(-int(self.model._total_timesteps) // max(1, self.rollout))
        return max(2, min(ITERATIONS, planned))

    def _row_bytes(self) -> int:
        """One row of the rollout buffer, all its arrays together."""
        if not self.rehearsal.on_policy:
            return 0
        buffer = self.model.rollout_buffer
        arrays = arrays_of(buffer, self.rehearsal.arrays)
        return sum(int(a.nbytes) for a in arrays) // int(buffer.buffer_size)

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
        if self.recurrent:
            large = max(2, min(batch, 2 * int(self.model.n_steps)))
            return max(1, large // 2), large
        traced = self.found.activations
        each = max(1, traced.per_unit) if traced else 2**17
        large = min(batch, max(16, min(SMALL_SAMPLES, SMALL_BYTES // each)))
        large = max(2, large)
        return max(1, large // 2), large

    def _work(self, batch: int) -> Work:
        envs = int(self.model.n_envs)
        if self.recurrent:
            # What a recurrent update holds depends on how long its sequences are: real ones only.
            steps = int(self.model.n_steps)
            return Work(
                batch=batch,
                rows=steps,
                env_steps=steps,
                env_seconds=0.5,
                minibatches=MINIBATCHES,
                epochs=1,
            )
        rows = min(int(getattr(self.model, "n_steps", 1)), max(2, -(-MINIBATCHES * batch // envs)))
        if self.rehearsal.seen.whole_rollout:
            rows = max(1, -(-batch // envs))
        return Work(
            batch=batch,
            rows=rows,
            env_steps=min(rows, 8),
            env_seconds=0.25,
            minibatches=MINIBATCHES,
            epochs=1,
        )

    def _filled(self, work: Work) -> Any:
        """A rollout buffer for this much work, filled; None where the run has a replay buffer."""
        if not self.rehearsal.on_policy:
            return None
        if self._kept is not None:
            return copy.deepcopy(self._kept)
        buffer = self.rehearsal.small_rollout(work.rows)
        self.rehearsal.collect(buffer, work)
        if self.recurrent:  # many real steps: taken once, used again
            self._kept = copy.deepcopy(buffer)
        return buffer

    def _update(self, batch: int) -> None:
        work = self._work(batch)
        buffer = self._filled(work)
        if not self.found.reset:
            self.found.reset = self.meter.now()
        self.rehearsal.update(buffer, work)

    def _record(
        self, small: int, large: int, batch: int, arrays: Sequence[tuple[str, int]]
    ) -> None:
        sequences = []
        for size in (small, large):
            work = self._work(size)
            buffer = self._filled(work)
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
        padding = self._padding(large, batch)
        found.live = _slope(batch, lambda b: allocations.live_peak(recorded.at(round(b * padding))))
        prints = [
            self._replay(recorded, round(batch * padding), arrays, SEEDS),
            self._replay(recorded, round(2 * batch * padding), arrays, SEEDS // 2),
        ]
        for moment in prints[0]:
            one, two = prints[0][moment], prints[1][moment]
            likely = one.likely + self._since_warm
            if found.seen and moment == "update.minibatch":
                seen = found.seen + sum(size for _, size in arrays if self.rehearsal.on_policy)
                # The first updates were seen; over many more, malloc holds what replays say.
                likely = max(seen, (seen + likely) // 2)
            found.growth[moment] = _line(batch, likely, likely + two.likely - one.likely)
            found.growth_spread[moment] = one.most - one.likely

    def _padding(self, recorded: int, batch: int) -> float:
        """How much more a recurrent run pads its batches than the recorded update did."""
        if not self.recurrent:
            return 1.0
        starts = self._filled(self._work(recorded)).episode_starts
        return max(1.0, padded_share(starts, batch) / padded_share(starts, recorded))

    def _recorded(self, buffer: Any, work: Work) -> None:
        self.rehearsal.drop_gradients()
        self.rehearsal.update(buffer, work, marked=True)

    def _gather_bytes(self, small: int, large: int) -> Slope:
        """Host-side bytes of one minibatch's gathering, copies and up-casts included."""
        peaks = []
        for size in (small, large):
            buffer = self._filled(self._work(size)) or self.model.replay_buffer
            if self.rehearsal.on_policy:
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
        self, recorded: Sequences, batch: int, arrays: Sequence[tuple[str, int]], seeds: int
    ) -> dict[str, Growth]:
        gather = self.found.gather.at(batch)
        events = recorded.at(batch)
        if self.rehearsal.on_policy:
            flattened = self.found.flattened and int(self.model.n_envs) > 1
            steps = on_policy_steps(
                arrays, events, gather, self.rollout, flattened, self._iterations()
            )
        else:
            steps = off_policy_steps(events, gather)
        return replay_often(list(steps), seeds)


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


def on_policy_steps(
    arrays: Sequence[tuple[str, int]],
    events: Sequence[Event],
    gather: int,
    rollout: int,
    flattened: bool,
    iterations: int,
) -> Iterator[Step]:
    """What a run of collect, flatten and minibatches asks of malloc, in its order."""
    held: dict[str, object] = {}
    for iteration in range(iterations):
        yield Moment("rollout")
        for name, size in arrays:
            # The new array is there before the old one goes, but zeroed pages cost nothing yet.
            if name in held:
                yield Free(held[name])
            yield Alloc(("rows", name, iteration), size)
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
