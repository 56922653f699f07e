"""Survey a plain torch training: what it holds, and what its rollout and updates will add.

Runs in the disposable child, where the program is. A small step to see what first use costs, two
recorded ones to learn the sequence of allocations, and a replay of that sequence at full size that
touches no memory. A run that records gradients while it collects is replayed with all the graphs
that it keeps.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from memfit.measure.kernel.proc import PeakMeter, own_bytes
from memfit.measure.survey import recorded_allocations
from memfit.measure.survey.cycle import Array, Cycle, live_peak, run_steps
from memfit.measure.survey.found import Found, line_through
from memfit.measure.survey.malloc_replay import HeapGrowth, Malloc
from memfit.measure.survey.recorded_allocations import GATHER, GATHERED, Sequences
from memfit.measure.survey.replay_fork import ReplayFork, blocks_of
from memfit.model import Slope

# A small step should cost little memory and time, yet be large enough that kernels choose the same
# ways of working as at full size.
SMALL_BYTES = 4 * 2**20
SMALL_SAMPLES = 64
WARM_SAMPLES = 16
REAL_SECONDS, REAL_BYTES, REAL_STEPS = 1.5, 384 * 2**20, 12
SEEDS, LONG_SEEDS = 6, 2
LONG = 16  # steps of a rollout whose graphs are kept


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How large a run is: samples of a minibatch and of a rollout step, and the arrays it holds.

    `unit` is the number of samples by which the run is said to grow.
    """

    unit: int
    width: int
    minibatches: int
    rollout: int
    steps: int
    arrays: Sequence[Array]

    @classmethod
    def of(cls, numbers: Mapping[str, Any]) -> Sizes:
        """The sizes that the run's formulas give as plain numbers."""
        return cls(**{**numbers, "arrays": [Array(**array) for array in numbers["arrays"]]})


class TorchSurveyor:
    """Takes a program through the stages."""

    def __init__(self, program: Any, stopped: int) -> None:
        self.program = program
        self.update = program.facts.update
        self.meter = PeakMeter()
        self.malloc = Malloc()
        self.found = Found(stopped=stopped)

    def run(self, full: Sizes, larger: Sizes) -> Found:
        """All stages, for the run's own size and for one that is twice as large."""
        found = self.found
        found.batch = full.unit
        free_before = self.malloc.free_bytes()
        self._warm_up(full)
        found.warm = found.reset = self.meter.now()
        found.retained = max(0, self.malloc.free_bytes() - free_before)
        # Matrix kernels keep buffers that depend on the real size, which no recording sees: replays
        # go on from where updates at that size leave the heap, if these are cheap.
        self.waiting = self._wait()
        warm = own_bytes()
        found.seen, since_warm = self._see(full), 0
        if found.seen:
            gc.collect()
            since_warm = max(0, own_bytes() - warm)
            self.waiting.dismiss()
            self.waiting = self._wait()
        # From here on the survey's own tools take memory, so nothing is read any more.
        updates = self._record(self._update_twice, self._small_batches(full.width))
        found.matched_share = updates.matched_share
        rollouts = None
        if full.steps:
            rollouts = self._record(self._rollout_twice, self._small_batches(full.rollout))
            kept = [Cycle.of(rollouts.at(n)).kept_bytes for n in (full.rollout, 2 * full.rollout)]
            if self.update.records_gradients:
                found.graph = line_through(full.rollout, 2 * full.rollout, *kept)
        found.live = line_through(
            full.width,
            2 * full.width,
            *(live_peak(Cycle.of(updates.at(n))) for n in (full.width, 2 * full.width)),
        )
        one, two = (self._replay(sizes, updates, rollouts) for sizes in (full, larger))
        for moment in one:
            more = two[moment].likely - one[moment].likely
            likely = one[moment].likely + since_warm
            if found.seen and moment == "update":
                seen = found.seen + sum(a.bytes for a in full.arrays if moment in a.phases)
                # The first steps were seen; over many more, malloc comes to hold what replays say.
                likely = max(seen, (seen + likely) // 2)
            found.growth[moment] = line_through(full.unit, larger.unit, likely, likely + more)
            found.growth_spread[moment] = one[moment].most - one[moment].likely
        self.waiting.dismiss()
        found.activations = activations(self.program, full.width)
        return found

    def _wait(self) -> ReplayFork:
        return ReplayFork(run_steps, unread=blocks_of(self.program.parameters()))

    def _warm_up(self, full: Sizes) -> None:
        held: dict[Any, Any] = {}
        if full.steps:
            kept = [self.program.rollout_step(min(full.rollout, WARM_SAMPLES), held)]
            del kept
        for _ in range(2):
            self.program.update(min(full.width, WARM_SAMPLES), held)
        held.clear()
        self.program.drop_gradients()
        gc.collect()

    def _see(self, full: Sizes) -> int:
        """Where that is a matter of tenths of a second, the growth of updates at the real size."""
        if self.update.records_gradients:
            return 0
        held: dict[Any, Any] = {}
        before, seen = own_bytes(), 0
        self.meter.start()
        seconds, done = 0.0, 1
        for width in sorted({min(full.width, n) for n in (64, 512, full.width)}):
            grown = self.meter.own_peak() - before
            if max(seconds / REAL_SECONDS, grown / REAL_BYTES) * width > done:
                break
            # A busy machine, and what a first time costs, must not change the plan.
            seconds = min(self._seconds(width, held) for _ in range(2))
            if width == full.width:
                for _ in range(max(1, min(REAL_STEPS, int(1 / max(seconds, 1e-3))))):
                    self.program.update(width, held)
                seen = max(0, self.meter.own_peak() - before)
            done = width
        held.clear()
        self.program.drop_gradients()
        return seen

    def _seconds(self, width: int, held: dict[Any, Any]) -> float:
        """The processor time of one update."""
        started = time.process_time()
        self.program.update(width, held)
        return time.process_time() - started

    def _small_batches(self, width: int) -> tuple[int, int]:
        """Two sizes for recording; the larger is the run's own where that is cheap."""
        probe = min(width, 2)
        each = (
            live_peak(Cycle.of(recorded_allocations.record(lambda: self._update_twice(probe))))
            // probe
        )
        large = min(width, max(4, min(SMALL_SAMPLES, SMALL_BYTES // max(1, each))))
        large = max(2, large)
        return max(1, large // 2), large

    def _record(self, work: Callable[[int], None], sizes: tuple[int, int]) -> Sequences:
        small, large = sizes
        recorded = [recorded_allocations.record(partial(work, n)) for n in sizes]
        return Sequences(small=recorded[0], large=recorded[1], small_batch=small, large_batch=large)

    def _update_twice(self, samples: int) -> None:
        held: dict[Any, Any] = {}
        self.program.update(samples, held)
        recorded_allocations.mark(GATHER)
        self.program.forward_done = lambda: recorded_allocations.mark(GATHERED)
        try:
            self.program.update(samples, held)
        finally:
            self.program.forward_done = None
        recorded_allocations.mark(GATHER)

    def _rollout_twice(self, samples: int) -> None:
        held: dict[Any, Any] = {}
        kept = [self.program.rollout_step(samples, held)]
        recorded_allocations.mark(GATHER)
        kept.append(self.program.rollout_step(samples, held))
        recorded_allocations.mark(GATHER)

    def _replay(
        self, sizes: Sizes, updates: Sequences, rollouts: Sequences | None
    ) -> dict[str, HeapGrowth]:
        steps = sizes.steps if self.update.records_gradients else min(sizes.steps, 4)
        told = {
            "update": Cycle.of(updates.at(sizes.width)),
            "minibatches": sizes.minibatches,
            "rollout": Cycle.of(rollouts.at(sizes.rollout)) if rollouts else None,
            "steps": steps,
            "arrays": sizes.arrays,
            "keeps_last_graph": self.update.keeps_last_graph,
        }
        # A long sequence evens out by itself what chance does in a short one.
        return self.waiting.replay(told, LONG_SEEDS if rollouts and steps > LONG else SEEDS)


def activations(program: Any, samples: int) -> Slope | None:
    """Bytes that the networks save for their backward pass, from a trace without memory.

    None where a network does something that only real data can answer.
    """
    low, high = max(1, samples // 2), max(2, samples)
    try:
        a, b = _saved_bytes(program, low), _saved_bytes(program, high)
    except Exception:  # noqa: BLE001 - a network may do anything in its forward pass
        return None
    return line_through(low, high, a, b)


def _saved_bytes(program: Any, samples: int) -> int:
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    parameters = {t.untyped_storage()._cdata for t in program.parameters()}
    saved: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in parameters:
            saved[storage._cdata] = storage.nbytes()
        return tensor

    with (
        FakeTensorMode(allow_non_fake_inputs=True),
        torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t),
    ):
        held = program.loss_of(samples)
    del held
    return sum(saved.values())
