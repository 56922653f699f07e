"""Surveys a training that is about to begin: what it holds, and what its updates will add.

Runs in the disposable child, where the training's objects are. The stages are small on purpose: a
little collecting, one small update to see what first use costs, two recorded ones to learn the
sequence of allocations, and a replay of that sequence at full size that touches no memory.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from memfit.errors import Unsupported
from memfit.measure.kernel.proc import PeakMeter
from memfit.measure.survey import recorded_allocations
from memfit.measure.survey.cycle import Cycle, GrowingCycle
from memfit.measure.survey.filling_sizes import FEW_SEEDS, replayed_where_filled
from memfit.measure.survey.malloc import Malloc
from memfit.measure.survey.malloc_replay import HeapGrowth
from memfit.measure.survey.recorded_allocations import Sequences, no_garbage, record_twice
from memfit.measure.survey.replay_fork import ReplayFork, blocks_of
from memfit.measure.survey.run_steps import run_steps
from memfit.measure.survey.saved_activations import saved_activations
from memfit.model import NO_SLOPE, Readings, Slope
from memfit.model.training import Driven, Sizes, Work, no_mark

# A small update should cost little memory and time, yet be large enough that kernels choose the
# same ways of working as at full size, with as many threads and small objects.
SMALL_BYTES = 32 * 2**20
LEAST_SAMPLES, SMALL_SAMPLES = 16, 512
WARM_SAMPLES = 16
# What comes and goes in a run is replayed so often, or as often as so many events allow; all steps
# of a rollout together have so many.
LEAST_ITERATIONS, MOST_ITERATIONS = 3, 12
MOST_EVENTS, MOST_ROLLOUT_EVENTS = 400_000, 40_000
SEEDS = 4  # draws; fewer where all of them would have more events than this
MOST_DRAWN_EVENTS = 2_000_000
# A long rollout whose graphs are kept evens out by itself what chance does in a short one.
LONG_ROLLOUT, LONG_SEEDS = 16, 2
ASSUMED_SAMPLE_BYTES = 2**20  # where nothing at all can be traced


class Surveyor:
    """Takes a training through the stages; `knobs` are its own, `larger` those of twice its size.

    `stopped` are the bytes of the process where the run would begin to learn. With `device`, it is
    also seen what updates would need on a card.
    """

    def __init__(
        self,
        training: Driven,
        *,
        stopped: int,
        knobs: Mapping[str, int],
        larger: Mapping[str, int],
        device: bool = False,
    ) -> None:
        self.device = device
        self.training = training
        self.knobs = knobs
        self.larger = larger
        self.meter = PeakMeter()
        self.malloc = Malloc()
        self.readings = Readings(stopped=stopped, warm=0, unit=1)
        self.recorded: dict[str, GrowingCycle] = {}

    def run(self) -> Readings:
        """All stages."""
        fork: ReplayFork | None = None
        try:
            self._warm_up()
            # From here on the survey's own tools take memory, so nothing is read any more.
            fork = ReplayFork(unread=blocks_of(self.training.tensors()))
            self._record()
            self._replay(fork)
        except Unsupported:
            raise
        except Exception as error:  # what a library does not foresee may refuse a small update
            if self.training.running_its_own:
                raise  # the run itself would fail there
            self._assume(error)
        finally:
            if fork is not None:
                fork.dismiss()
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

    def _record(self) -> None:
        full, training = self._full, self.training
        traced = saved_activations(training, full.width)
        sizes = self._told_apart(*self._recorded_sizes(full.width, traced))
        updates = self.recorded["update"] = self._recorded_updates(*sizes)
        graph = NO_SLOPE
        if full.steps:
            rollouts = self.recorded["rollout"] = self._recorded_rollouts(full.collected, traced)
            if full.records_gradients:
                low, high = full.collected, 2 * full.collected
                kept = [rollouts.at(n).kept_bytes for n in (low, high)]
                graph = Slope.through(low, high, *kept)
        padding = training.padding(updates.batch, full.width)
        ends = (full.width, 2 * full.width)
        live = [updates.at(round(n * padding)).live_peak for n in ends]
        self.readings = replace(
            self.readings,
            activations=traced,
            matched_share=updates.matched_share,
            unmatched=self._unmatched(updates, round(full.width * padding)),
            graph=graph,
            live=Slope.through(*ends, *live),
        )
        if self.device:
            from memfit.measure.survey.device_survey import survey_device  # loads torch

            found = survey_device(training, self._work(sizes[0]), *sizes, full.width)
            self.readings = replace(self.readings, device=found)
        self._settle()
        self.malloc.release()  # replays are made elsewhere

    def _unmatched(self, updates: GrowingCycle, batch: int) -> int:
        """What an update may hold more than is known.

        Blocks that could not be matched may grow too. Where an update follows the lengths of
        episodes, a recording tells little of the next one.
        """
        if self.training.follows_episodes:
            return updates.at(batch).live_peak
        times = batch / updates.batch
        held = (1 - updates.matched_share) * updates.at(updates.batch).live_peak
        return max(0, round(held * (times - 1)))

    def _recorded_sizes(self, width: int, traced: Slope | None) -> tuple[int, int]:
        """Two sizes for recording; the larger is the run's own where that is cheap."""
        large = min(width, self.training.recorded_samples)
        if not large:
            each = traced.per_unit if traced else self._sample_bytes(width)
            room = SMALL_BYTES // max(1, each)
            large = min(width, max(LEAST_SAMPLES, min(SMALL_SAMPLES, room)))
        large = max(2, large)
        return max(1, large // 2), large

    def _told_apart(self, small: int, large: int) -> tuple[int, int]:
        """The sizes, the larger raised where both would be the same work: whole steps of all envs.

        Two recordings of the same samples would say that nothing grows with them.
        """
        least = self._samples(small)
        return (small, large) if least < self._samples(large) else (least, 2 * least)

    def _samples(self, asked: int) -> int:
        """How many samples an update takes that is asked for so many."""
        return self.training.samples_of(self._work(asked))

    def _sample_bytes(self, width: int) -> int:
        """What one sample of an update holds, from an update of two."""
        probe = min(width, 2)
        return Cycle.of(self._recorded_update(probe)).live_peak // self._samples(probe)

    def _recorded_updates(self, small: int, large: int) -> GrowingCycle:
        sequences = Sequences(
            small=self._recorded_update(small),
            large=self._recorded_update(large),
            small_batch=self._samples(small),
            large_batch=self._samples(large),
        )
        return GrowingCycle(sequences)

    def _work(self, samples: int) -> Work:
        return Work(batch=samples, knobs=self.knobs)

    def _recorded_update(self, samples: int) -> list[recorded_allocations.AllocationEvent]:
        work = self._work(samples)
        self.training.collect(work)
        return record_twice(partial(self.training.update, work, recorded_allocations.mark))

    def _recorded_rollouts(self, samples: int, traced: Slope | None) -> GrowingCycle:
        small, large = self._recorded_sizes(samples, traced)
        step, most = self.training.rollout_step, MOST_ROLLOUT_EVENTS // self._full.telling_steps
        first, second = (record_twice(partial(step, n), most) for n in (small, large))
        return GrowingCycle(
            Sequences(small=first, large=second, small_batch=small, large_batch=large)
        )

    def _replay(self, fork: ReplayFork) -> None:
        full, larger = self._full, self.training.sizes(self.larger)
        short = full.steps <= LONG_ROLLOUT or not full.records_gradients
        one = self._replayed(fork, full, SEEDS if short else LONG_SEEDS)
        two = self._replayed(fork, larger, FEW_SEEDS)
        growth, spread = {}, {}
        for moment in one:
            likely = one[moment].likely
            growth[moment] = Slope.through(full.unit, larger.unit, likely, two[moment].likely)
            spread[moment] = one[moment].most - likely
        self.readings = replace(self.readings, growth=growth, growth_spread=spread)
        further = replayed_where_filled(
            partial(self._replayed_far, fork),
            knobs=self.knobs,
            larger=self.larger,
            warm=self.readings.warm,
            growth=(_likely(one), _likely(two)),
        )
        self.readings = replace(self.readings, further=tuple(further))

    def _replayed_far(self, fork: ReplayFork, knobs: Mapping[str, int]) -> dict[str, int]:
        """Growth at another size, from few draws."""
        return _likely(self._replayed(fork, self.training.sizes(knobs), FEW_SEEDS))

    def _replayed(self, fork: ReplayFork, sizes: Sizes, seeds: int) -> dict[str, HeapGrowth]:
        updates, rollouts = self.recorded["update"], self.recorded.get("rollout")
        padding = self.training.padding(updates.batch, sizes.width)
        update = updates.at(round(sizes.width * padding))
        rest = updates.at(round(sizes.rest * padding)) if sizes.rest else None
        rollout = rollouts.at(sizes.collected) if rollouts else None
        events = len(update.kinds) * (2 if rest else 1)
        events += sizes.telling_steps * len(rollout.kinds) if rollout else 0
        run = run_steps(
            sizes=sizes,
            update=update,
            rest=rest,
            rollout=rollout,
            iterations=self._iterations(sizes, events),
        )
        fewer = max(1, MOST_DRAWN_EVENTS // max(1, events * run.iterations))
        with no_garbage():
            return fork.replay(run, min(seeds, fewer))

    def _iterations(self, sizes: Sizes, events: int) -> int:
        """How many iterations to replay: not more than the run has."""
        most = min(MOST_ITERATIONS, sizes.iterations or MOST_ITERATIONS)
        return max(LEAST_ITERATIONS, min(most, MOST_EVENTS // max(1, events)))

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


def _likely(growth: Mapping[str, HeapGrowth]) -> dict[str, int]:
    return {moment: found.likely for moment, found in growth.items()}
