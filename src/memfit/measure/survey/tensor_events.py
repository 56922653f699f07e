"""Recorded tensors of an update: what a card's allocator would be asked for, in order.

Every operation of torch is seen below autograd, and each storage that it makes, with its lifetime.
What a kernel takes for itself while it works is not seen: on a card these are other kernels.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

from memfit.measure.survey.recorded_allocations import WORK_DONE, AllocationEvent

# What makes a handle of cuBLAS, which then has a workspace in each thread that uses it.
MATMULS = frozenset({"addmm", "mm", "bmm", "baddbmm", "addbmm", "addmv", "mv", "dot"})


class TensorRecorder(TorchDispatchMode):
    """Notes each new storage, and when it is gone; what was there before is no part of it."""

    def __init__(self, before: Iterable[torch.Tensor] = ()) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.events: list[AllocationEvent] = []
        self.multiplies = False
        self._alive: dict[int, weakref.ref[Any]] = {}
        self._own = {tensor.untyped_storage()._cdata for tensor in before}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        given = {t.untyped_storage()._cdata for t in tree_iter((args, kwargs)) if _is_tensor(t)}
        out = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        self.multiplies |= name in MATMULS
        for tensor in tree_iter(out):
            if _is_tensor(tensor):
                self._see(tensor.untyped_storage(), name, given)
        return out

    def done(self) -> None:
        """A piece of work is done."""
        for free in (False, True):
            marker = "" if free else WORK_DONE
            block = len(self.events) - free
            self.events.append(AllocationEvent(block, free, 0, marker))

    def _see(self, storage: torch.UntypedStorage, name: str, given: set[int]) -> None:
        at = storage._cdata
        if at in self._alive or at in self._own or at in given:
            return
        block, size = len(self.events), storage.nbytes()
        if not size:
            return
        self.events.append(AllocationEvent(block, False, size, "", ((name, "", 0),), True))

        def gone(_: object) -> None:
            del self._alive[at]
            self.events.append(AllocationEvent(block, True, size))

        self._alive[at] = weakref.ref(storage, gone)


def _is_tensor(found: object) -> bool:
    return isinstance(found, torch.Tensor) and found.layout is torch.strided


def record_tensors_twice(
    work: Callable[[], object], before: Iterable[torch.Tensor] = ()
) -> TensorRecorder:
    """Do a piece of work three times, the first unseen, and record what a card would be asked for.

    Its events are made as `record_twice` makes them, for the same `Cycle`.
    """
    with as_on_a_card():
        work()
        recorder = TensorRecorder(before)
        held = []
        with recorder:
            for _ in range(2):
                held.append(work())
                recorder.done()
    events = list(recorder.events)
    middle = next(i for i, event in enumerate(events) if event.marker == WORK_DONE)
    gone = {event.block for event in events[:middle] if event.free}
    left = [event for event in events[:middle] if event.block not in gone]
    recorder.events = left + events[middle:]
    return recorder


@contextmanager
def as_on_a_card() -> Iterator[None]:
    """Optimizers update all parameters at once, as they do by default on a card."""
    from torch.optim import optimizer

    name = "_get_foreach_kernels_supported_devices"
    known = getattr(optimizer, name, None)
    if known is None:
        yield
        return
    with patch.object(optimizer, name, lambda: [*known(), "cpu", "meta"]):
        yield
