"""Surveys a training that is about to begin: what it holds, and what its updates will add.

Runs in the disposable child, where the training's objects are. The stages are small on purpose: a
little collecting, one small update to see what first use costs, two recorded ones to learn the
sequence of allocations, and a replay of that sequence at full size that touches no memory.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from memfit.errors import Unsupported
from memfit.measure.kernel.proc import PeakMeter, own_bytes
from memfit.measure.survey import recorded_allocations
from memfit.measure.survey.malloc_replay import SEEDS, HeapGrowth, Malloc
from memfit.measure.survey.recorded_allocations import Sequences, no_garbage, record_twice
from memfit.measure.survey.replay_fork import ReplayFork, blocks_of
from memfit.measure.survey.run_steps import Cycle, live_peak, run_steps
from memfit.measure.survey.saved_activations import saved_activations
from memfit.model import NO_SLOPE, Readings, Slope, phase_of
from memfit.model.training import MINIBATCH, Driven, Sizes, Work, no_mark

# A small update should cost little memory and time, yet be large enough that kernels choose the
# same ways of working as at full size, with as many threads and small objects.
SMALL_BYTES = 32 * 2**20
LEAST_SAMPLES, SMALL_SAMPLES = 16, 512
WARM_SAMPLES, MIDDLE_SAMPLES = 16, 128
# An update at the run's own size is better than any replay of it, where it is this cheap.
REAL_SECONDS = 0.6
REAL_HELD_BYTES, REAL_GROWN_BYTES = 16 * 2**20, 2**30
REAL_UPDATES = 3
# What comes and goes in a run is replayed so often (a run that collects anew each time is long, a
# step on a replay buffer is short), or as often as so many events allow.
ROLLOUTS, GRADIENT_STEPS = 12, 12
MOST_EVENTS = 100_000
# A long rollout whose graphs are kept evens out by itself what chance does in a short one.
LONG_ROLLOUT, LONG_SEEDS = 16, 2
ASSUMED_SAMPLE_BYTES = 2**20  # where nothing at all can be traced


@dataclass(kw_only=True)
class _Heap:
    """What is known of the heap once small updates have been done."""

    fork: ReplayFork
    seen: int = 0
    since_warm: int = 0
    recorded: dict[str, Sequences] = field(default_factory=dict)


class Surveyor:
    """Takes a training through the stages; `knobs` are its own, `larger` those of twice its size.

    `stopped` are the bytes of the process where the run would begin to learn.
    """

    def __init__(
        self,
        training: Driven,
        *,
        stopped: int,
        knobs: Mapping[str, int],
        larger: Mapping[str, int],
    ) -> None:
        self.training = training
        self.knobs = knobs
        self.larger = larger
        self.meter = PeakMeter()
        self.malloc = Malloc()
        self.readings = Readings(stopped=stopped, warm=0, unit=1)

    def run(self) -> Readings:
        """All stages."""
        heap: _Heap | None = None
        try:
            self._warm_up()
            heap = self._heap()
            self._record(heap)
            self._replay(heap)
        except Unsupported:
            raise
        except Exception as error:  # what a library does not foresee may refuse a small update
            if self.training.running_its_own:
                raise  # the run itself would fail there
            self._assume(error)
        finally:
            if heap is not None:
                heap.fork.dismiss()
        return self.readings

    @property
    def _full(self) -> Sizes:
        return self.training.sizes(self.knobs)

    def _warm_up(self) -> None:
        """Collect a little and update once, to see what first use costs."""
        free_before = self.malloc.free_bytes()
        full = self._full
        if full.steps:
            self.training.rollout_step(min(full.collected, WARM_SAMPLES))
        self._update(min(full.width, WARM_SAMPLES))
        self._settle()
        self.readings = replace(
            self.readings,
            unit=self._full.unit,  # the first update may have shown that it takes all at once
            warm=self.meter.now(),
            retained=max(0, self.malloc.free_bytes() - free_before),
        )

    def _settle(self) -> None:
        self.training.drop_gradients()
        gc.collect()

    def _update(self, samples: int) -> None:
        work = self._work(samples)
        self.training.collect(work)
        self.training.update(work, no_mark)

    # -- at the run's own size -------------------------------------------------------------------

    def _heap(self) -> _Heap:
        """The heap as replays find it: as it is now, or as updates at the real size leave it.

        Matrix kernels keep buffers that depend on the size, which no recording sees; where these
        come to lie decides what malloc can give back. From here on the survey's own tools take
        memory, so nothing is read any more.
        """
        fork, warm = self._fork(), own_bytes()
        try:
            seen = self._see_real_updates(warm)
        except Exception:
            fork.dismiss()
            raise
        if seen is None:
            return _Heap(fork=fork)
        since_warm = max(0, own_bytes() - warm)
        fork.dismiss()
        self.readings = replace(self.readings, seen=seen)
        return _Heap(fork=self._fork(), seen=seen, since_warm=since_warm)

    def _fork(self) -> ReplayFork:
        return ReplayFork(unread=blocks_of(self.training.tensors()))

    def _see_real_updates(self, warm: int) -> int | None:
        """The growth of updates at the run's own size; None where they would take too long."""
        full = self._full
        if full.records_gradients:
            return None
        most = REAL_SECONDS * self.training.patience
        seconds, grown, done = 0.0, 0, 1
        seen: int | None = None
        for samples in (n for n in (WARM_SAMPLES, MIDDLE_SAMPLES) if n < full.width):
            if self._too_much(seconds, grown, done, samples, most):
                break
            # The first is slowed down by the fork before it.
            seconds, grown = min(self._real_update(samples, warm) for _ in range(2))
            done = samples
        if not self._too_much(seconds, grown, done, full.width, most):
            seen = max(self._real_update(full.width, warm)[1] for _ in range(REAL_UPDATES))
        self._settle()
        return seen

    def _too_much(self, seconds: float, grown: int, done: int, samples: int, most: float) -> bool:
        # Half of what a small update takes does not grow with it.
        share = 0.5 if done == WARM_SAMPLES else 1.0
        held = self.training.held_bytes(self._work(samples))
        return (
            share * seconds * samples > most * done
            or held > REAL_HELD_BYTES
            or grown * samples > REAL_GROWN_BYTES * done
        )

    def _real_update(self, samples: int, warm: int) -> tuple[float, int]:
        """How long one keeps this thread busy, and what it grows by beyond its buffers.

        Other processes must not count. Copies made before the first minibatch are over by then.
        """
        work = self._work(samples)
        self.training.collect(work)
        first = [MINIBATCH]

        def mark(word: str) -> None:
            if word in first:
                first.clear()
                self.meter.start()

        self.meter.start()
        started = time.thread_time()
        self.training.update(work, mark)
        seconds = time.thread_time() - started
        held = self.training.held_bytes(work)
        return seconds, max(0, self.meter.own_peak() - warm - held)

    # -- recorded and replayed -------------------------------------------------------------------

    def _record(self, heap: _Heap) -> None:
        full, training = self._full, self.training
        traced = saved_activations(training, full.width)
        small, large = self._recorded_sizes(full.width, traced)
        updates = heap.recorded["update"] = self._recorded_updates(small, large)
        graph = NO_SLOPE
        if full.steps:
            rollouts = heap.recorded["rollout"] = self._recorded_rollouts(full.collected, traced)
            if full.records_gradients:
                low, high = full.collected, 2 * full.collected
                kept = [Cycle.of(rollouts.at(n)).kept_bytes for n in (low, high)]
                graph = Slope.through(low, high, *kept)
        padding = training.padding(updates.large_batch, full.width)
        ends = (full.width, 2 * full.width)
        live = [live_peak(Cycle.of(updates.at(round(n * padding)))) for n in ends]
        self.readings = replace(
            self.readings,
            activations=traced,
            matched_share=updates.matched_share,
            graph=graph,
            live=Slope.through(*ends, *live),
        )
        self._settle()
        self.malloc.release()  # replays are made elsewhere

    def _recorded_sizes(self, width: int, traced: Slope | None) -> tuple[int, int]:
        """Two sizes for recording; the larger is the run's own where that is cheap."""
        large = min(width, self.training.recorded_samples)
        if not large:
            each = traced.per_unit if traced else self._sample_bytes(width)
            room = SMALL_BYTES // max(1, each)
            large = min(width, max(LEAST_SAMPLES, min(SMALL_SAMPLES, room)))
        large = max(2, large)
        return max(1, large // 2), large

    def _sample_bytes(self, width: int) -> int:
        """What one sample of an update holds, from an update of two."""
        probe = min(width, 2)
        return live_peak(Cycle.of(self._recorded_update(probe))) // probe

    def _recorded_updates(self, small: int, large: int) -> Sequences:
        return Sequences(
            small=self._recorded_update(small),
            large=self._recorded_update(large),
            small_batch=self.training.samples_of(self._work(small)),
            large_batch=self.training.samples_of(self._work(large)),
        )

    def _work(self, samples: int) -> Work:
        return Work(batch=samples, knobs=self.knobs)

    def _recorded_update(self, samples: int) -> list[recorded_allocations.AllocationEvent]:
        work = self._work(samples)
        self.training.collect(work)
        return record_twice(partial(self.training.update, work, recorded_allocations.mark))

    def _recorded_rollouts(self, samples: int, traced: Slope | None) -> Sequences:
        small, large = self._recorded_sizes(samples, traced)
        step = self.training.rollout_step
        first, second = (record_twice(partial(step, n)) for n in (small, large))
        return Sequences(small=first, large=second, small_batch=small, large_batch=large)

    def _replay(self, heap: _Heap) -> None:
        full, larger = self._full, self.training.sizes(self.larger)
        short = full.steps <= LONG_ROLLOUT or not full.records_gradients
        one = self._replayed(heap, full, SEEDS if short else LONG_SEEDS)
        two = self._replayed(heap, larger, SEEDS // 2 if short else LONG_SEEDS)
        growth, spread = {}, {}
        for moment in one:
            likely = one[moment].likely + heap.since_warm
            if heap.seen and moment == full.moment:
                alive = (a for a in full.arrays if phase_of(moment) in map(phase_of, a.phases))
                seen = heap.seen + sum(a.bytes for a in alive)
                # The first updates were seen; over many more, malloc holds what replays say.
                likely = max(seen, (seen + likely) // 2)
            more = two[moment].likely - one[moment].likely
            growth[moment] = Slope.through(full.unit, larger.unit, likely, likely + more)
            spread[moment] = one[moment].most - one[moment].likely
        self.readings = replace(self.readings, growth=growth, growth_spread=spread)

    def _replayed(self, heap: _Heap, sizes: Sizes, seeds: int) -> dict[str, HeapGrowth]:
        updates, rollouts = heap.recorded["update"], heap.recorded.get("rollout")
        padding = self.training.padding(updates.large_batch, sizes.width)
        width = round(sizes.width * padding)
        update = Cycle.of(updates.at(width))
        steps = run_steps(
            sizes=sizes,
            update=update,
            rollout=Cycle.of(rollouts.at(sizes.collected)) if rollouts else None,
            iterations=self._iterations(sizes, len(update.acts)),
        )
        with no_garbage():
            return heap.fork.replay(steps, seeds)

    def _iterations(self, sizes: Sizes, events: int) -> int:
        """How many iterations to replay: not more than the run has."""
        most = ROLLOUTS if sizes.arrays or sizes.steps else GRADIENT_STEPS
        if sizes.iterations:
            most = min(most, sizes.iterations)
        return max(2, min(most, MOST_EVENTS // max(1, events)))

    def _assume(self, error: Exception) -> None:
        """Where a small update cannot be run: twice what the networks save for backward."""
        found, width = self.readings, self._full.width
        saved = found.activations or saved_activations(self.training, width)
        guess = saved or Slope(fixed=0, per_unit=ASSUMED_SAMPLE_BYTES)
        note = (
            f"a small update could not be run ({type(error).__name__}: {error}): what updates add "
            "is assumed; try --probe"
        )
        self.readings = replace(
            found,
            unit=self._full.unit,
            warm=found.warm or self.meter.now(),
            activations=saved,
            live=Slope(fixed=2 * guess.fixed, per_unit=2 * guess.per_unit),
            growth={},
            assumed=True,
            notes=(*found.notes, note),
        )
