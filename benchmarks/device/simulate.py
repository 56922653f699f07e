"""A training's iterations on tensors without data, and what a card's allocator makes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from memfit.device.blocks import Block
from memfit.device.caching_allocator import CachingAllocator, OutOfMemory
from memfit.measure.survey.device_survey import THREADS, WORKSPACE
from memfit.measure.survey.recorded_allocations import AllocationEvent
from memfit.measure.survey.tensor_events import MATMULS, TensorRecorder, as_on_a_card

ITERATIONS = 4


class Predicted(NamedTuple):
    """Peaks in bytes, and whether the card has room."""

    allocated: int
    reserved: int
    fits: bool


def supervised(
    network: Callable[[], nn.Module],
    inputs: Callable[[], tuple[Tensor, ...]],
    loss: Callable[[nn.Module, tuple[Tensor, ...]], Tensor],
    optimizer: str,
    zero_at: int | None,
    capacity: int | None = None,
) -> Predicted:
    """Some iterations, gradients freed at their start (0), before backward (1) or their end (2)."""
    with FakeTensorMode(allow_non_fake_inputs=True):
        model = network()
        steps = getattr(torch.optim, optimizer)(model.parameters(), lr=1e-3)
        held = [*model.parameters(), *model.buffers()]
        held += [t for s in steps.state.values() for t in s.values() if isinstance(t, Tensor)]

        def update() -> None:
            if zero_at in (0, None):
                steps.zero_grad()
            found = loss(model, inputs())
            if zero_at == 1:
                steps.zero_grad()
            found.backward()
            steps.step()
            if zero_at == 2:
                steps.zero_grad()

        return after_updates(update, held, ITERATIONS, capacity)


def after_updates(
    update: Callable[[], None], held: list[Tensor], times: int, capacity: int | None = None
) -> Predicted:
    """What the allocator of a card of this capacity makes of some updates."""
    recorder = TensorRecorder(held)
    with as_on_a_card(), recorder:
        for _ in range(times):
            update()
    events = list(recorder.events)
    sizes = [tensor.untyped_storage().nbytes() for tensor in held]
    allocator, fits = CachingAllocator(capacity=capacity), True
    try:
        _ask(allocator, [n for n in sizes if n], events, THREADS if recorder.multiplies else 0)
    except OutOfMemory:
        fits = False
    return Predicted(allocator.usage.peak_allocated, allocator.usage.peak_reserved, fits)


def _ask(
    allocator: CachingAllocator, sizes: list[int], events: list[AllocationEvent], workspaces: int
) -> None:
    """What stays, then one request after the other; workspaces with the first multiplications."""
    for size in sizes:
        allocator.malloc(size)
    at: dict[int, Block] = {}
    for event in events:
        if event.free:
            allocator.free(at.pop(event.block))
            continue
        at[event.block] = allocator.malloc(event.bytes)
        if workspaces and event.where[0][0] in MATMULS:
            allocator.malloc(WORKSPACE)
            workspaces -= 1
