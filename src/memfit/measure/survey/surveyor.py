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
from collections.abc import Sequence
from functools import partial
from typing import Any

from memfit.measure.kernel.proc import PeakMeter, own_bytes
from memfit.measure.survey import recorded_allocations, saved_activations
from memfit.measure.survey.found import Found, line_through
from memfit.measure.survey.malloc_replay import SEEDS, HeapGrowth, Malloc
from memfit.measure.survey.recorded_allocations import Sequences
from memfit.measure.survey.rehearsal import Sb3Rehearsal, Work, arrays_of
from memfit.measure.survey.replay_fork import ReplayFork, blocks_of
from memfit.measure.survey.update_cycle import padded_share, update_cycles
from memfit.model import Slope

# A small update should cost little memory and time, yet be large enough that kernels choose the
# same ways of working as at full size.
SMALL_BYTES = 4 * 2**20
SMALL_SAMPLES = 64
WARM_SAMPLES = 16
MINIBATCHES = 2
# An update at the run's own batch size is better than any replay of it, where it is this cheap.
REAL_SECONDS = 0.6
REAL_BYTES = 16 * 2**20
REAL_UPDATES = 3
# What comes and goes in a run is replayed so often (a rollout is many minibatches, a gradient step
# is one), or as often as so many events allow.
ROLLOUTS, GRADIENT_STEPS = 3, 12
MOST_EVENTS = 12_000


class Surveyor:
    """Takes a model through the stages."""

    def __init__(self, model: Any, rehearsal: Sb3Rehearsal, stopped: int) -> None:
        self.model = model
        self.rehearsal = rehearsal
        self.meter = PeakMeter()
        self.found = Found(stopped=stopped)
        self.malloc = Malloc()
        self.recurrent = hasattr(model, "_last_lstm_states")
        self._kept: Any = None
        self._waiting: ReplayFork | None = None
        self._since_warm = 0
        self.rollout = int(model.n_steps) * int(model.n_envs) if rehearsal.on_policy else 0

    def run(self, arrays: Sequence[tuple[str, int]]) -> Found:
        """All stages; `arrays` are the run's buffer arrays with their full sizes."""
        found = self.found
        found.batch = found.batch or self._batch()
        try:
            self._warm_up()
            found.activations = saved_activations.activations(self.model, found.batch)
            small, large = self._small_batches(found.batch)
            self._record(small, large, found.batch, arrays)
        except Exception as error:  # custom policies and buffers may refuse
            if self.rehearsal.collecting:
                raise  # the run itself would fail there
            self._assume(error)
        finally:
            if self._waiting is not None:
                self._waiting.dismiss()
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
        # From here on the survey's own tools take memory; replays go on from here, or from where
        # updates at the real batch size leave the heap.
        self._waiting = self._wait()
        if self._real_batch():
            self._waiting.dismiss()
            self._waiting = self._wait()

    def _wait(self) -> ReplayFork:
        return ReplayFork(update_cycles, unread=blocks_of(self.rehearsal.tensors()))

    def _real_batch(self) -> bool:
        """Where that is a matter of tenths of a second, update at the run's own batch size.

        Matrix kernels keep buffers that depend on it, which no recording sees; where these come to
        lie decides what malloc can give back. False where it would take too long.
        """
        found, warm = self.found, own_bytes()
        most = REAL_SECONDS * (4 if self.recurrent else 1)
        seconds, done = 0.0, 1
        self.rehearsal.on_first_minibatch = self.meter.start  # the flatten copy is over then
        for batch in sorted({min(found.batch, n) for n in (WARM_SAMPLES, 128, found.batch)}):
            held = self._row_bytes() * self._work(batch).rows
            # Half of what a small update takes does not grow with it.
            share = 0.5 if done == WARM_SAMPLES else 1.0
            if share * seconds * batch > most * done or held > REAL_BYTES:
                break
            times = []
            for _ in range(REAL_UPDATES):
                self.meter.start()
                times.append(self._seconds(batch))
                if batch == found.batch:
                    found.seen = max(found.seen, self.meter.own_peak() - warm - held)
                elif len(times) == 2:  # the first is slowed down by the fork before it
                    break
            seconds, done = min(times), batch
        self.rehearsal.on_first_minibatch = lambda: None
        self.rehearsal.drop_gradients()
        gc.collect()
        if done == found.batch:
            self._since_warm = max(0, own_bytes() - warm)
        return done == found.batch

    def _seconds(self, batch: int) -> float:
        """How long one small update keeps this thread busy: other processes must not count."""
        started = time.thread_time()
        self._update(batch)
        return time.thread_time() - started

    def _iterations(self, events: int) -> int:
        """How many iterations to replay: not more than the run has."""
        most = GRADIENT_STEPS
        if self.rehearsal.on_policy:
            most = min(ROLLOUTS, -(-int(self.model._total_timesteps) // self.rollout))
        return max(2, min(most, MOST_EVENTS // max(1, events)))

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
            found.activations = saved_activations.activations(self.model, found.batch)
        saved = found.activations or Slope(fixed=0, per_unit=2**20)
        found.live = Slope(fixed=2 * saved.fixed, per_unit=2 * saved.per_unit)
        found.growth = {}
        found.notes.append(
            f"a small update could not be run ({type(error).__name__}: {error}): what updates add "
            "is assumed; try --probe"
        )

    def _batch(self) -> int:
        batch = int(getattr(self.model, "batch_size", None) or self.rollout)
        # A minibatch may go through in smaller pieces, as in memfit's own MicroBatchPPO.
        batch = min(batch, int(getattr(self.model, "micro_batch_size", None) or batch))
        return min(batch, self.rollout) if self.rollout else batch

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
            gradient_steps=2 * int(getattr(self.model, "policy_delay", 1)),
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
            update = partial(self.rehearsal.update, buffer, work, marked=True)
            sequences.append(recorded_allocations.record(update))
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
        found.live = _slope(
            batch, lambda b: recorded_allocations.live_peak(recorded.at(round(b * padding)))
        )
        self.rehearsal.drop_gradients()
        self.malloc.release()  # replays are made elsewhere
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
            found.growth[moment] = line_through(
                batch, 2 * batch, likely, likely + two.likely - one.likely
            )
            found.growth_spread[moment] = one.most - one.likely

    def _padding(self, recorded: int, batch: int) -> float:
        """How much more a recurrent run pads its batches than the recorded update did."""
        if not self.recurrent:
            return 1.0
        starts = self._filled(self._work(recorded)).episode_starts
        return max(1.0, padded_share(starts, batch) / padded_share(starts, recorded))

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
    ) -> dict[str, HeapGrowth]:
        assert self._waiting is not None
        told = {
            "events": recorded.at(batch),
            "gather": self.found.gather.at(batch),
            "arrays": arrays if self.rehearsal.on_policy else None,
            "rollout": self.rollout,
            "flattened": self.found.flattened and int(self.model.n_envs) > 1,
            "iterations": self._iterations(len(recorded.large)),
        }
        return self._waiting.replay(told, seeds)


def _slope(batch: int, bytes_at: Any) -> Slope:
    return line_through(batch, 2 * batch, bytes_at(batch), bytes_at(2 * batch))
