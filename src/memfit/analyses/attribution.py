"""Deal the memory of a process out to those who hold it, as far as the process told.

Every byte is dealt once: what a holder claims is taken from the mapping in which it lies, and never
more than is there. What nobody claims stays a row of its own.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace

from memfit.model import (
    HeldArrays,
    HeldObjects,
    Holder,
    Kind,
    Layer,
    Native,
    Part,
    ProcessView,
    Told,
)
from memfit.model.explanation import Dealt

# Layers that are dealt out; the others have their holder already: a library, a file, a thread.
DEALT = (Layer.OBJECTS, Layer.HEAP, Layer.ARENAS, Layer.BLOCKS)
_WORDS = (
    ("rollout_buffer", Kind.BUFFER),
    ("replay_buffer", Kind.BUFFER),
    (" graph", Kind.ACTIVATIONS),
    (" grad", Kind.GRADIENTS),
    ("optimizer", Kind.OPTIMIZER),
    ("envs[", Kind.ENV_STATE),
    ("policy", Kind.PARAMETERS),
    (".weight", Kind.PARAMETERS),
    (".bias", Kind.PARAMETERS),
)
_PAGE = 4096  # what the kernel deals out
FREE_OBJECTS = "python.free"
OTHER_OBJECTS = "python.unreached"
UNREAD_OBJECTS = "python.unread"
FREE_HEAP = "malloc.free"
IN_FLIGHT, ALL_TENSORS, ARRAYS = "torch.activations", "torch.tensors", "numpy.arrays"


def deal(view: ProcessView, told: Told | None) -> Dealt:
    """Deal out one process: to what it told, and to the libraries whose data lead to the rest."""
    native = view.native
    pots = _Pots([part for part in view.parts if part.layer in DEALT])
    dealt = Dealt(private=view.private)
    if told is not None:
        dealt.holders += _told(told, pots)
    dealt.holders += _numbers(native, told, pots)
    dealt.holders += _native(native, pots)
    dealt.holders += _threads(native, pots)
    if told is not None:
        dealt.holders.append(_free_heap(told, native, pots))
        dealt.holders += _pools(pots, read=told.complete or not told.outside)
    dealt.holders = [replace(holder, pid=view.pid) for holder in _merged(dealt.holders)]
    dealt.left = list(pots.rest())
    others = sum(p.private for p in view.parts if p.layer not in (*DEALT, Layer.UNKNOWN))
    nobodys = (OTHER_OBJECTS, UNREAD_OBJECTS)
    held = sum(h.bytes for h in dealt.holders if h.own and h.path not in nobodys)
    dealt.named = others + held
    return dealt


def _merged(holders: Sequence[Holder]) -> Iterator[Holder]:
    """One row for each path."""
    rows: dict[str, Holder] = {}
    for holder in holders:
        same = rows.get(holder.path)
        rows[holder.path] = holder if same is None else _sum(same, holder)
    yield from rows.values()


def _sum(one: Holder, other: Holder) -> Holder:
    return replace(
        one,
        bytes=one.bytes + other.bytes,
        reserved=one.reserved + other.reserved,
        count=one.count + other.count,
    )


def _told(told: Told, pots: _Pots) -> Iterator[Holder]:
    # What has an address first: small blocks may lie anywhere.
    placed = [sum(pots.take_at(*block) for block in a.blocks) if a.own else 0 for a in told.arrays]
    held = [_arrays(a, amount, pots) for a, amount in zip(told.arrays, placed, strict=True)]
    held += [_objects(objects, pots) for objects in told.objects]
    yield from (replace(holder, told=not told.outside) for holder in held)


def _numbers(native: Native, told: Told | None, pots: _Pots) -> Iterator[Holder]:
    """Tensors and arrays that the process did not tell of."""
    known = sorted(block for a in told.arrays for block in a.blocks) if told else []
    tensors, arrays = "torch's tensors of 64 KiB and more", "numpy's arrays of 64 KiB and more"
    if told:
        tensors = "tensors that no Python object holds: kept for the backward pass, or in work"
        arrays = "arrays of which the process did not tell: they came, or moved, meanwhile"
    for path, blocks, what in (
        (IN_FLIGHT if told else ALL_TENSORS, native.tensors, tensors),
        (ARRAYS, native.arrays, arrays),
    ):
        others = []
        for start, size, resident in blocks:
            # What was told of this place is another's, and may have been less by then.
            inside = known[bisect_left(known, (start, 0)) : bisect_left(known, (start + size, 0))]
            rest = resident - sum(amount for _, amount in inside)
            if rest >= Native.LEAST_NUMBERS:
                others.append((start, size, rest))
        if others:
            yield Holder(
                path=path,
                kind=Kind.ACTIVATIONS if path == IN_FLIGHT else Kind.ARRAYS,
                bytes=sum(pots.take_at(start, resident) for start, _, resident in others),
                reserved=sum(size for _, size, _ in others),
                count=len(others),
                what=what,
                told=False,
            )


def _native(native: Native, pots: _Pots) -> Iterator[Holder]:
    for library, amount in sorted(native.libraries.items(), key=lambda item: -item[1]):
        taken = pots.take_layer(Layer.HEAP, amount)
        what = "C and C++ objects to which this library's data lead"
        yield _beneath(f"native.{library}", taken, what)


def _threads(native: Native, pots: _Pots) -> Iterator[Holder]:
    """What is in use in the arenas of threads, but for the arrays that were told of there."""
    taken = pots.taken_of(Layer.ARENAS)
    for pool, amount in sorted(native.threads.items(), key=lambda item: -item[1]):
        told = min(taken, amount)
        taken -= told
        held = pots.take_layer(Layer.ARENAS, amount - told)
        what = "work memory of these threads, in their own malloc arenas"
        yield _beneath(f"threads.{pool}", held, what)


def _beneath(path: str, held: int, what: str, kind: Kind = Kind.BASE) -> Holder:
    """What is held beneath Python, or by its own pools."""
    return Holder(path=path, kind=kind, bytes=held, reserved=held, count=1, what=what, told=False)


def kind_of(path: str) -> Kind:
    """What arrays are in a run, by the words of their holder's path."""
    return next((kind for word, kind in _WORDS if word in path), Kind.ARRAYS)


def _arrays(arrays: HeldArrays, placed: int, pots: _Pots) -> Holder:
    if arrays.own:
        amount = placed + pots.take_heap(arrays.small)
    else:
        amount = sum(resident for _, resident in arrays.blocks) + arrays.small
    return Holder(
        path=arrays.path,
        kind=kind_of(arrays.path),
        bytes=amount,
        reserved=arrays.bytes,
        count=arrays.count,
        what=arrays.what,
        own=arrays.own,
        also=arrays.also,
    )


def _objects(objects: HeldObjects, pots: _Pots) -> Holder:
    amount = pots.take_layer(Layer.OBJECTS, objects.small) + pots.take_heap(objects.large)
    what = "Python objects"
    if objects.elements:
        what += f", up to {objects.elements:,} in one container"
    path = f"{objects.path} objects" if objects.of_run else f"python.{objects.path}"
    return Holder(
        path=path if objects.reached else OTHER_OBJECTS,
        kind=Kind.OBJECTS,
        bytes=amount,
        reserved=amount,
        count=objects.count,
        what=what,
    )


def _free_heap(told: Told, native: Native, pots: _Pots) -> Holder:
    if native.libraries:  # read in one moment with the rest of the heap
        amount = pots.take_layer(Layer.HEAP, native.free)
        amount += pots.take_layer(Layer.ARENAS, native.free_in_arenas)
    else:
        amount = pots.take_heap(told.free)
    return Holder(
        path=FREE_HEAP,
        kind=Kind.FRAGMENTATION,
        bytes=amount,
        reserved=told.free,
        count=1,
        what="freed, and kept by malloc",
        told=not native.libraries,
    )


def _pools(pots: _Pots, *, read: bool) -> Iterator[Holder]:
    """What is left of Python's pools: free blocks, and objects that no holder reaches.

    Unless all were `read`, these are what there was no time for.
    """
    path, rest_is = OTHER_OBJECTS, "small objects that no holder reaches"
    if not read:
        path, rest_is = UNREAD_OBJECTS, "small objects that there was no time to read"
    unused = sum(max(0, p.resident - p.used) for p in pots.parts if p.layer is Layer.OBJECTS)
    free = pots.take_layer(Layer.OBJECTS, unused)
    rest = pots.take_layer(Layer.OBJECTS, 2**62)
    for row, kind, amount, what in (
        (FREE_OBJECTS, Kind.FRAGMENTATION, free, "free blocks in Python's pools"),
        (path, Kind.OBJECTS, rest, rest_is),
    ):
        if amount:
            yield _beneath(row, amount, what, kind)


class _Pots:
    """What is left of each part to deal out, in bytes of PSS."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = parts
        self.left = [part.bytes for part in parts]
        spans = sorted((a, b, i) for i, part in enumerate(parts) for a, b in part.spans)
        self._starts = [a for a, _, _ in spans]
        self._spans = spans
        heap = [i for i, p in enumerate(parts) if p.layer in (Layer.HEAP, Layer.ARENAS)]
        blocks = [i for i, p in enumerate(parts) if p.layer is Layer.BLOCKS]
        # Small blocks come from the heap; a block of its own is the exception.
        self._heap = heap + sorted(blocks, key=lambda i: parts[i].bytes)

    def take_at(self, address: int, resident: int) -> int:
        """Memory from an address on, in one mapping or several that follow one another.

        What forks share counts by their part of it. A first page alone is no part of any layer.
        """
        at = bisect_right(self._starts, address) - 1
        if at < 0 or address >= self._spans[at][1]:
            at, address = at + 1, (address // _PAGE + 1) * _PAGE
        taken = 0
        while resident > 0 and at < len(self._spans) and self._starts[at] <= address:
            _, end, i = self._spans[at]
            here, part = max(0, min(resident, end - address)), self.parts[i]
            taken += self._take(i, here * part.bytes // max(1, part.resident))
            at, address, resident = at + 1, end, resident - here
        return taken

    def take_layer(self, layer: Layer, amount: int) -> int:
        """Memory of a layer, wherever in it."""
        own = [i for i, part in enumerate(self.parts) if part.layer is layer]
        return self._take_from(own, amount)

    def taken_of(self, layer: Layer) -> int:
        """What has been taken of a layer so far."""
        return sum(
            part.bytes - left
            for part, left in zip(self.parts, self.left, strict=True)
            if part.layer is layer
        )

    def take_heap(self, amount: int) -> int:
        """Memory from malloc, in small blocks."""
        return self._take_from(self._heap, amount)

    def rest(self) -> Iterator[Part]:
        """The parts with what nobody claimed of them."""
        for part, left in zip(self.parts, self.left, strict=True):
            if left:
                share = left / part.bytes
                yield replace(part, bytes=left, private=round(part.private * share))

    def _take_from(self, parts: Sequence[int], amount: int) -> int:
        taken = 0
        for i in parts:
            taken += self._take(i, amount - taken)
        return taken

    def _take(self, i: int, amount: int) -> int:
        taken = max(0, min(amount, self.left[i]))
        self.left[i] -= taken
        return taken
