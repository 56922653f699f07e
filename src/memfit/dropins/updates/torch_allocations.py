"""Every allocation of torch's CPU allocator while a step runs, by torch's own profiler."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack

# Time, address, and bytes, negative where released.
TorchAllocation = tuple[int, int, int]


def torch_allocations(step: Callable[[], object]) -> list[TorchAllocation]:
    """Run a step, and return what torch allocated and released meanwhile, in order."""
    from torch.profiler import ProfilerActivity, profile

    with ExitStack() as then:  # the profiler writes notes of its own to file descriptor 2
        stderr, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
        then.callback(os.close, stderr)
        then.callback(os.dup2, stderr, 2)
        os.dup2(nowhere, 2)
        os.close(nowhere)
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
            step()
        events = profiler.profiler.kineto_results.experimental_event_tree()
        stack = list(events)
    found: list[TorchAllocation] = []
    while stack:
        event = stack.pop()
        if event.name == "[memory]":
            fields = event.extra_fields
            found.append((event.start_time_ns, fields.ptr, fields.alloc_size))
        else:
            stack.extend(event.children)
    return sorted(found, key=lambda one: one[0])
