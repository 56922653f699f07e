"""What an update takes, from smaller ones that are really run."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from memfit.dropins.settings import give_back_large_blocks, trim
from memfit.dropins.updates.accumulation import part_of, samples_in
from memfit.dropins.updates.size import (
    UpdateBytes,
    checked_limit,
    evenly,
    largest_fitting,
)
from memfit.dropins.updates.torch_allocations import torch_allocations
from memfit.errors import Unsupported, UsageError
from memfit.units import format_bytes


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
    """Run updates of 1, 2, 4 ... samples while the next is sure to be within the limit.

    `update(samples)` goes forward and backward. From here on malloc gives large blocks back as
    soon as they are free: else what is resident would follow from the order of all allocations,
    up to 2.6 times what is asked for.
    """
    modules = list(modules)
    if any(p.device.type != "cpu" for module in modules for p in module.parameters()):
        raise Unsupported(
            "a limit is about the memory of this process, but the network is on a device: "
            "give micro_batch_size instead"
        )
    give_back_large_blocks()
    with _as_before(modules):
        samples = min(batch, 2 if has_batch_norm(modules) else 1)  # it takes no single sample
        update(samples)  # code that is loaded on first use is there for good
        parameters = [p for module in modules for p in module.parameters()]
        gradients = sum(p.grad.nbytes for p in parameters if p.grad is not None)
        while True:
            took = UpdateBytes(
                resident=resident(),
                to_come=to_come,
                gradients=gradients,
                samples=samples,
                asked=_asked(update, samples, modules),
            )
            if 2 * samples > batch or took.peak(2 * samples) > limit:
                break
            samples *= 2
    gc.collect()
    trim()
    return replace(took, resident=resident())


def has_batch_norm(modules: Iterable[torch.nn.Module]) -> bool:
    norm = torch.nn.modules.batchnorm._BatchNorm
    return any(isinstance(m, norm) for module in modules for m in module.modules())


def resident() -> int:
    """Bytes that this process holds, and its workers' share of theirs."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        raise Unsupported(
            "a limit needs Linux, which says what a process holds: give micro_batch_size instead"
        ) from None
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
    if torch.autograd.profiler._is_profiler_enabled:
        raise Unsupported(
            "a limit is measured with torch's profiler, which is in use: give micro_batch_size"
        )
    for module in modules:
        module.zero_grad(set_to_none=True)
    trim()

    def twice() -> None:
        update(samples)
        update(samples)

    live: dict[int, int] = {}
    total = most = 0
    for _, address, change in torch_allocations(twice):
        if change > 0:
            live[address] = change
            total += change
            most = max(most, total)
        else:  # what was there before is not of this update
            total -= live.pop(address, 0)
    return most


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
