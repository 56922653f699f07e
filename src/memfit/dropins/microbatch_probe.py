"""What one sample of an update takes, from a few small ones that are really run."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from memfit.dropins.accumulate_gradients import part_of, samples_in
from memfit.dropins.microbatch_size import (
    SLACK,
    UpdateBytes,
    checked_limit,
    evenly,
    largest_fitting,
)
from memfit.dropins.settings import trim
from memfit.errors import Unsupported, UsageError
from memfit.units import format_bytes

# Kernels are chosen by size: the line is drawn through the largest two sizes that are tried.
LARGEST = 64


def fit_micro_batch(
    loss_of: Callable[[Any], Any],
    batch: Any,
    limit: int | str,
    *,
    modules: Iterable[torch.nn.Module],
) -> int:
    """The micro-batch for `accumulate` that keeps this process within a limit.

    `modules` are those that the loss trains. Their gradients are zeroed; everything else, random
    numbers included, is as before.
    """
    modules = list(modules)

    def update(samples: int) -> None:
        found = loss_of(part_of(batch, 0, samples))
        (found[0] if isinstance(found, tuple) else found).backward()

    count, limit = samples_in(batch), checked_limit(limit)
    took = measure(update, count, modules, limit=limit)
    return fitting(took, count, limit)


def fitting(took: UpdateBytes, batch: int, limit: int) -> int:
    """The largest even piece of a batch within a limit, or an error that says what is missing."""
    largest = largest_fitting(took.peak, batch, limit)
    if not largest:
        raise UsageError(
            f"not even one sample fits {format_bytes(limit)}: {format_bytes(took.resident)} are "
            f"resident before the update, and one sample comes to {format_bytes(took.peak(1))}. "
            "Give a larger limit, or make the rollout, the network or the base smaller "
            "(memfit plan says which)"
        )
    return evenly(batch, largest)


def measure(
    update: Callable[[int], None],
    batch: int,
    modules: Iterable[torch.nn.Module],
    *,
    limit: int,
    to_come: int = 0,
) -> UpdateBytes:
    """Run small updates and draw the line; `update(samples)` goes forward and backward.

    Sizes double from one sample on, as long as the next is sure to be within the limit.
    """
    modules = list(modules)
    if any(p.device.type != "cpu" for module in modules for p in module.parameters()):
        raise Unsupported(
            "a limit is about the memory of this process, but the network is on a device: "
            "give micro_batch_size instead"
        )
    with _as_before(modules):
        update(1)  # code that is loaded on first use is there for good
        sizes, asked = [1], [_asked(update, 1, modules)]
        while (
            2 * sizes[-1] <= min(batch, LARGEST)
            and resident() + to_come + SLACK * 2 * asked[-1] <= limit
        ):
            sizes.append(2 * sizes[-1])
            asked.append(_asked(update, sizes[-1], modules))
    gc.collect()
    trim()
    per_sample = asked[-1]  # of one sample alone, all counts as its own
    if len(sizes) > 1:
        per_sample = -(-(asked[-1] - asked[-2]) // (sizes[-1] - sizes[-2]))
    per_sample = max(1, per_sample)
    return UpdateBytes(
        resident=resident(),
        to_come=to_come,
        fixed=max(0, asked[-1] - per_sample * sizes[-1]),
        per_sample=per_sample,
    )


def resident() -> int:
    """Bytes that this process holds, and its workers' share of theirs."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") + sum(_pss(pid) for pid in _below(os.getpid()))


def _below(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found = [int(child) for child in task.read_text().split()]
        except OSError:  # it ended meanwhile
            continue
        for child in found:
            yield child
            yield from _below(child)


def _pss(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def _asked(update: Callable[[int], None], samples: int, modules: Iterable[torch.nn.Module]) -> int:
    """The most bytes that torch had asked for at once, gradients included.

    Twice, since the second pass adds to gradients that are there already.
    """
    for module in modules:
        module.zero_grad(set_to_none=True)

    def twice() -> None:
        update(samples)
        update(samples)

    live = most = 0
    for change in _changes(twice):
        live += change
        most = max(most, live)
    return most


def _changes(step: Callable[[], None]) -> list[int]:
    """Every allocation of torch, and every release as a negative number, in order of time."""
    from torch.profiler import ProfilerActivity, profile

    if torch.autograd.profiler._is_profiler_enabled:
        raise Unsupported(
            "a limit is measured with torch's profiler, which is in use: give micro_batch_size"
        )
    with _quiet_stderr():
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
            step()
        events = list(profiler.profiler.kineto_results.experimental_event_tree())
    found = []
    while events:
        event = events.pop()
        if event.name == "[memory]":
            found.append((event.start_time_ns, event.extra_fields.alloc_size))
        else:
            events.extend(event.children)
    return [change for _, change in sorted(found, key=lambda one: one[0])]


@contextmanager
def _as_before(modules: list[torch.nn.Module]) -> Iterator[None]:
    """Random numbers and running statistics are afterwards what they were; gradients are none."""
    random = torch.get_rng_state()
    kept = [(b, b.clone()) for module in modules for b in module.buffers()]
    try:
        yield
    finally:
        torch.set_rng_state(random)
        with torch.no_grad():
            for buffer, value in kept:
                buffer.copy_(value)
        for module in modules:
            module.zero_grad(set_to_none=True)


@contextmanager
def _quiet_stderr() -> Iterator[None]:
    """The profiler writes notes of its own to file descriptor 2."""
    saved = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(nowhere)
