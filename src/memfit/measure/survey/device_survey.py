"""What an update would ask of a card's allocator, and what that would reserve.

The update runs here at two small sizes. Its tensors, stated at the run's own size, are given to a
simulation of the allocator, with what the networks and optimizers hold asked for first.
"""

from __future__ import annotations

from functools import partial

from memfit.device.allocator_settings import AllocatorSettings, parse_settings
from memfit.device.blocks import Block
from memfit.device.caching_allocator import CachingAllocator, Usage
from memfit.measure.survey.cycle import ALIGNED, FREE, Cycle, GrowingCycle
from memfit.measure.survey.recorded_allocations import Sequences
from memfit.measure.survey.tensor_events import TensorRecorder, record_tensors_twice
from memfit.model import Slope
from memfit.model.reading import DeviceReading
from memfit.model.training import Driven, Work, no_mark

# cuBLAS has 4,096 KiB twice and 16 KiB eight times in each thread that multiplies matrices: where
# the forward pass runs, and where autograd does.
WORKSPACE, THREADS = 8_519_680, 2
_TIMES = 3  # an update after the other, until what is cached does not change any more
_OTHERS = ("expandable_segments:True", "max_split_size_mb:128")


def survey_device(
    training: Driven, work: Work, small: int, large: int, width: int
) -> DeviceReading:
    """Record updates of two sizes, and simulate those of the run's size and of twice that."""
    first = _recorded(training, work, small)
    second = _recorded(training, work, large)
    cycles = GrowingCycle(
        Sequences(
            small=first.events,
            large=second.events,
            small_batch=_samples(training, work, small),
            large_batch=_samples(training, work, large),
        )
    )
    held = [int(t.untyped_storage().nbytes()) for t in training.tensors()]
    workspaces = THREADS * WORKSPACE if second.multiplies else 0
    simulated = partial(_simulated, held, workspaces)
    ends = (width, 2 * width)
    lows, highs = (cycles.at(n) for n in ends)
    usage = [simulated(cycle, AllocatorSettings()) for cycle in (lows, highs)]
    return DeviceReading(
        live=Slope.through(*ends, lows.live_peak, highs.live_peak),
        allocated=Slope.through(*ends, *(u.peak_allocated for u in usage)),
        reserved=Slope.through(*ends, *(u.peak_reserved for u in usage)),
        workspaces=workspaces,
        matched_share=cycles.matched_share,
        other_settings={
            name: simulated(lows, parse_settings(name)).peak_reserved for name in _OTHERS
        },
    )


def _recorded(training: Driven, work: Work, samples: int) -> TensorRecorder:
    small = Work(batch=samples, knobs=work.knobs)
    training.collect(small)
    return record_tensors_twice(partial(training.update, small, no_mark), training.tensors())


def _samples(training: Driven, work: Work, samples: int) -> int:
    return training.samples_of(Work(batch=samples, knobs=work.knobs))


def _simulated(
    held: list[int], workspaces: int, cycle: Cycle, settings: AllocatorSettings
) -> Usage:
    """Some updates, one after the other, on an empty card."""
    allocator = CachingAllocator(settings)
    for size in held:
        if size:
            allocator.malloc(size)
    for _ in range(workspaces // WORKSPACE):
        allocator.malloc(WORKSPACE)
    old: dict[int, Block] = {}
    kinds, slots, sizes = cycle.kinds.tolist(), cycle.slots.tolist(), cycle.sizes.tolist()
    for _ in range(_TIMES):
        new: dict[int, Block] = {}
        for kind, slot in zip(kinds, slots, strict=True):
            if kind <= ALIGNED:
                new[slot] = allocator.malloc(sizes[slot])
            elif kind == FREE:
                allocator.free(new.pop(slot))
            elif slot in old:
                allocator.free(old.pop(slot))
        old = {slot: new[slot] for slot in cycle.left if slot in new}
    return allocator.usage
