"""Where numpy's arrays, torch's tensors and maps of another process have their numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from memfit.inside.array_blocks import LARGE, Blocks, Small
from memfit.measure.kernel.mappings import Mapping
from memfit.measure.live.outside_walk.batches import Batch, NumberedTree
from memfit.measure.live.outside_walk.interpreter import Interpreter
from memfit.measure.live.outside_walk.memory_copy import Addresses, Flags, Indices, Words
from memfit.measure.live.outside_walk.type_kinds import TypeKind, TypeKinds

# An array, in words: its numbers, how many dimensions and which, whose view it is, its type.
_DATA, _COUNT, _SHAPE, _BASE, _DTYPE, _ARRAY_WORDS = 2, 3, 4, 6, 7, 9
_MOST_DIMENSIONS = 64
_MOST_VIEWS = 16
# A tensor in C++, in words; what follows its Python object is counted from there.
_STORAGE, _META, _VERSION, _OBJECT, _SIZES, _DTYPE_AFTER = 2, 3, 5, (6, 7, 8), 1, 14
_TENSOR_WORDS = 24
_INLINE_SIZES = 5
_GRADIENT, _HISTORY, _META_WORDS = 5, 6, 8
_STORAGE_DATA, _STORAGE_DEVICE, _STORAGE_BYTES, _STORAGE_WORDS = 2, 5, 6, 7
_TORCH = ("libtorch", "libc10")
_DTYPES = {
    **dict(
        enumerate(("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"))
    ),
    **dict(enumerate(("complex32", "complex64", "complex128", "bool"), start=8)),
    15: "bfloat16",
    23: "float8_e5m2",
    24: "float8_e4m3fn",
    27: "uint16",
    28: "uint32",
    29: "uint64",
}
_DEVICES = {0: "cpu", 1: "cuda"}
_MOST_BYTES = 2**46
_LEAST_GIVEN, _MOST_OVERHEAD, _MOST_AROUND = 32, 1024, 128
_TENSORS_AT_ONCE = 20_000

Mark = Callable[[Addresses], Flags]


class NumberBlocks(Blocks):
    """The memory of all arrays and tensors found so far.

    `histories` are the C++ objects of tensors' graphs, by the holder from which each was met.
    """

    def __init__(
        self,
        python: Interpreter,
        kinds: TypeKinds,
        maps: Sequence[Mapping],
        names: NumberedTree,
        mark: Mark,
    ) -> None:
        super().__init__(names.tree)
        self._copy = python.copy
        self._python = python
        self._kinds = kinds
        self._numbered = names
        self._mark = mark
        self._dtypes: dict[int, tuple[str, int, str]] = {}
        torch = [m for m in maps if any(part in m.path for part in _TORCH)]
        self._torch = np.array(sorted((m.start, m.end) for m in torch), dtype=np.uint64)
        self._object = _OBJECT[0]
        self.tensor_classes: set[int] = set()
        self.histories: list[tuple[int, int]] = []

    def enter(self, kind: TypeKind, batch: Batch) -> Iterator[Batch]:
        """Note new arrays, tensors or maps; what else they hold comes back."""
        if kind.form == "array":
            yield from self._arrays(batch)
        elif kind.form == "tensor":
            self._tensors(batch)
        else:
            self._maps(batch)

    def again_all(self, batch: Batch) -> None:
        """Note more ways to arrays and tensors that are known."""
        for address, node in zip(batch.addresses.tolist(), batch.nodes.tolist(), strict=True):
            if address in self.holders:
                self.again(address, self._numbered.nodes[node])

    def _arrays(self, batch: Batch) -> Iterator[Batch]:
        owners, words = self._owners(batch.addresses)
        views = owners != batch.addresses
        fresh = ~views
        if views.any():
            fresh[views] = self._mark(owners[views])
            known = ~fresh
            self.again_all(Batch(addresses=owners[known], nodes=batch.nodes[known],
                                 weights=batch.weights[known]))  # fmt: skip
        owners, words, batch = owners[fresh], words[fresh], batch.at(fresh)
        base = words[:, _BASE]
        forms = self._forms(base)
        # Numbers of something else that is counted for itself.
        lent = np.isin(forms, ("bytes", "memoryview", "map", "tensor"))
        yield Batch(addresses=base, nodes=batch.nodes, weights=batch.weights).at(base != 0)
        owners, words, batch = owners[~lent], words[~lent], batch.at(~lent)
        shapes, nbytes = self._shapes(words)
        large = nbytes >= LARGE
        for i in np.flatnonzero(large).tolist():
            name = self._dtype(int(words[i, _DTYPE]))[0]
            count = int(words[i, _COUNT]) & 0xFFFFFFFF
            shape = tuple(shapes[i, :count].tolist())
            node = self._numbered.nodes[int(batch.nodes[i])]
            start = int(words[i, _DATA])
            block = self.note_large(start, int(nbytes[i]), node, "numpy", "cpu", name, shape)
            self.holders[int(owners[i])] = block
        small = ~large & (nbytes > 0)
        self._small(batch.at(small), nbytes[small], "numpy", words[small, _DTYPE], shapes[small])
        self._around(words[small, _DATA], nbytes[small], batch.at(small))
        yield from self._objects(words, nbytes, batch)

    def _owners(self, addresses: Addresses) -> tuple[Addresses, Words]:
        """The arrays whose numbers these look into."""
        owners, words = addresses.copy(), self._copy.words(addresses, _ARRAY_WORDS)
        for _ in range(_MOST_VIEWS):
            of_array = self._forms(words[:, _BASE]) == "array"
            if not of_array.any():
                break
            owners[of_array] = words[of_array, _BASE]
            words[of_array] = self._copy.words(owners[of_array], _ARRAY_WORDS)
        return owners, words

    def _forms(self, addresses: Addresses) -> np.ndarray[tuple[int], np.dtype[np.str_]]:
        """What each of these objects is, as far as that matters to what holds it."""
        types = self._copy.word(addresses + np.uint64(8))
        types[addresses == 0] = 0
        own, inverse = np.unique(types, return_inverse=True)
        forms = []
        for address in own.tolist():
            kind = self._kinds[address]
            form = kind.form if kind is not None else ""
            named = kind is not None and kind.name in ("bytes", "bytearray", "array")
            forms.append("bytes" if form == "leaf" and named else form)
        return np.array(forms, dtype="U12")[inverse]

    def _shapes(self, words: Words) -> tuple[Indices, Indices]:
        """The dimensions of arrays, and their bytes; none where they make no sense."""
        counts = (words[:, _COUNT] & np.uint64(0xFFFFFFFF)).astype(np.int64)
        sound = counts <= _MOST_DIMENSIONS
        most = int(counts[sound].max(initial=0))
        raw = self._copy.words(words[:, _SHAPE], max(1, most))
        within = np.arange(max(1, most))[None, :] < counts[:, None]
        sound &= ~((raw > np.uint64(_MOST_BYTES)) & within).any(axis=1)
        shapes = np.where(within & sound[:, None], raw, np.uint64(1)).astype(np.int64)
        own, inverse = np.unique(words[:, _DTYPE], return_inverse=True)
        each = np.array([self._dtype(a)[1] for a in own.tolist()], dtype=np.int64)[inverse]
        total = shapes.astype(np.float64).prod(axis=1) * each
        sound &= total < _MOST_BYTES
        return shapes, np.where(sound, total, 0).astype(np.int64)

    def _dtype(self, address: int) -> tuple[str, int, str]:
        """The name of numbers' type, how many bytes each has, and its kind's letter."""
        if address not in self._dtypes:
            words = self._copy.list_at(address, 7)
            found = "", 0, ""
            if words:
                # numpy 1 has the size where numpy 2 has flags, with the alignment beside it.
                old = words[4] >> 32
                size = words[4] & 0xFFFFFFFF if old else words[5]
                kind = self._kinds[words[2]]
                name = kind.name if kind is not None else ""
                found = name.removesuffix("_"), size if size < 2**31 else 0, chr(words[3] & 0x7F)
            self._dtypes[address] = found
        return self._dtypes[address]

    def _objects(self, words: Words, nbytes: Indices, batch: Batch) -> Iterator[Batch]:
        """What arrays of objects hold."""
        for i in np.flatnonzero((nbytes > 0) & (nbytes < 2**26)).tolist():
            dtype = self._dtypes.get(int(words[i, _DTYPE]))
            if dtype is None or dtype[2] != "O":
                continue
            places = int(words[i, _DATA]) + 8 * np.arange(int(nbytes[i]) // 8, dtype=np.int64)
            things = self._copy.word(places.astype(np.uint64))
            node = int(batch.nodes[i])
            below = self._numbered.below(node, "[*]")
            count = len(things)
            yield Batch(
                addresses=things,
                nodes=np.full(count, below),
                weights=np.full(count, batch.weights[i]),
            )

    def _small(
        self, batch: Batch, nbytes: Indices, library: str, types: Words, shapes: Indices
    ) -> None:
        """Sum up small blocks for their holders."""
        own, first, inverse = np.unique(batch.nodes, return_index=True, return_inverse=True)
        sums = np.bincount(inverse, weights=nbytes * batch.weights)
        counts = np.bincount(inverse, weights=batch.weights)
        for i, number in enumerate(own.tolist()):
            node = self._numbered.nodes[number]
            held = node.small_arrays
            if not isinstance(held, Small):
                kind = int(types[first[i]])
                name = self._dtype(kind)[0] if library == "numpy" else _DTYPES.get(kind, "")
                shape = tuple(n for n in shapes[first[i]].tolist() if n >= 0)
                held = node.small_arrays = Small(library, "cpu", name, shape)
            held.count += int(counts[i])
            held.nbytes += int(sums[i])

    def _maps(self, batch: Batch) -> None:
        words = self._copy.words(batch.addresses, 4)
        for start, nbytes, node, own in zip(
            words[:, 2].tolist(), words[:, 3].tolist(), batch.nodes.tolist(),
            batch.addresses.tolist(), strict=True,
        ):  # fmt: skip
            if start and start % 4096 == 0 and LARGE <= nbytes < _MOST_BYTES:
                named = self._numbered.nodes[node]
                block = self.note_large(start, nbytes, named, "mmap", "cpu", "bytes", (nbytes,))
                self.holders[own] = block

    def _tensors(self, batch: Batch) -> None:
        """Note tensors in the order of their C++ objects: what lies together is read together."""
        words = self._copy.words(batch.addresses, 4)
        inner = np.where(words[:, 2] > np.uint64(4096), words[:, 2], words[:, 3])
        order = np.argsort(inner, kind="stable")
        for start in range(0, len(order), _TENSORS_AT_ONCE):
            piece = order[start : start + _TENSORS_AT_ONCE]
            self._tensors_of(inner[piece], batch.at(piece))

    def _tensors_of(self, inner: Addresses, batch: Batch) -> None:
        tensors = self._copy.words(inner, _TENSOR_WORDS)
        right = self.of_torch(tensors[:, 0])
        tensors, batch = tensors[right], batch.at(right)
        self.tensor_classes.update(np.unique(tensors[:, 0]).tolist())
        self._overheads(inner[right], tensors, batch)
        self._gradients(tensors, batch)
        self.note_tensors(tensors, batch)

    def _overheads(self, inner: Addresses, tensors: Words, batch: Batch) -> None:
        """Count what malloc gave for the C++ objects of tensors: as much as small numbers take."""
        total = np.zeros(len(inner), dtype=np.int64)
        for places in (inner, tensors[:, _STORAGE], tensors[:, _VERSION]):
            given = self._given(places)
            total += np.where(given <= _MOST_OVERHEAD, given, 0)
        self._beside(batch, total)

    def _around(self, starts: Addresses, nbytes: Indices, batch: Batch) -> None:
        """Count what malloc gave more for small numbers than they take: heads, and rounding up."""
        more = self._given(starts) - nbytes
        self._beside(batch, np.where(more <= _MOST_AROUND, more, 0))

    def _given(self, places: Addresses) -> Indices:
        """The size that malloc has noted before each place; of what it did not give, nothing."""
        heads = self._copy.word(places - np.uint64(8)) & ~np.uint64(7)
        sound = (heads >= _LEAST_GIVEN) & (heads % np.uint64(16) == 0) & (heads < _MOST_BYTES)
        return np.where(sound, heads, np.uint64(0)).astype(np.int64)

    def _beside(self, batch: Batch, amounts: Indices) -> None:
        """Count memory for the holders of some objects, beside what these are."""
        there = amounts > 0
        self._numbered.add(batch.at(there), amounts[there] * 0, amounts[there], count=False)

    def of_torch(self, words: Words) -> Flags:
        """Which of these words point into torch's libraries, as the first of its objects do."""
        if not len(self._torch):
            return np.zeros(len(words), dtype=bool)
        at = np.searchsorted(self._torch[:, 0], words, side="right") - 1
        return np.asarray((at >= 0) & (words < self._torch[at, 1]), dtype=bool)

    def note_tensors(self, tensors: Words, batch: Batch) -> int:
        """Note C++ tensors whose storage is new; returns how many bytes that added."""
        storages = tensors[:, _STORAGE]
        words = self._copy.words(storages, _STORAGE_WORDS)
        right = self.of_torch(words[:, 0]) & (words[:, _STORAGE_BYTES] < np.uint64(_MOST_BYTES))
        tensors, storages, words = tensors[right], storages[right], words[right]
        batch = batch.at(right)
        fresh = self._mark(storages)
        known = Batch(addresses=storages, nodes=batch.nodes, weights=batch.weights)
        self.again_all(known.at(~fresh))
        tensors, words, batch = tensors[fresh], words[fresh], batch.at(fresh)
        storages = storages[fresh]
        shapes, types = self._tensor_shapes(tensors, batch)
        nbytes = words[:, _STORAGE_BYTES].astype(np.int64)
        device = words[:, _STORAGE_DEVICE]
        on_cpu = (device & np.uint64(0xFF)) == 0
        for i in np.flatnonzero((nbytes >= LARGE) | (~on_cpu & (nbytes > 0))).tolist():
            number, index = int(device[i]) & 0xFF, int(device[i]) >> 8 & 0xFF
            where = _DEVICES.get(number, f"device {number}")
            where = where if number == 0 else f"{where}:{index}"
            shape = tuple(n for n in shapes[i].tolist() if n >= 0)
            node = self._numbered.nodes[int(batch.nodes[i])]
            dtype = _DTYPES.get(int(types[i]), "")
            start = int(words[i, _STORAGE_DATA])
            block = self.note_large(start, int(nbytes[i]), node, "torch", where, dtype, shape)
            self.holders[int(storages[i])] = block
        small = (nbytes < LARGE) & on_cpu & (nbytes > 0)
        self._small(batch.at(small), nbytes[small], "torch", types[small], shapes[small])
        self._around(words[small, _STORAGE_DATA], nbytes[small], batch.at(small))
        return int((nbytes * batch.weights).sum())

    def _tensor_shapes(self, tensors: Words, batch: Batch) -> tuple[Indices, Words]:
        """Dimensions (-1 beyond the last), and the numbers of the types."""
        for at in _OBJECT:  # where a tensor has its Python object: the same in all of them
            if (tensors[:, at] == batch.addresses).any():
                self._object = at
        follows, rows = self._object, np.arange(len(tensors))
        counts = tensors[rows, follows + _SIZES]
        sizes = np.stack(
            [tensors[rows, follows + _SIZES + 1 + i] for i in range(_INLINE_SIZES)], axis=1
        )
        beyond = (counts > _INLINE_SIZES) & (counts < _MOST_DIMENSIONS)
        if beyond.any():
            sizes[beyond] = self._copy.words(sizes[beyond, 0], _INLINE_SIZES)
        shown = np.minimum(counts, np.uint64(_INLINE_SIZES)).astype(np.int64)
        shapes = np.where(np.arange(_INLINE_SIZES)[None, :] < shown[:, None],
                          sizes.astype(np.int64), -1)  # fmt: skip
        return shapes, tensors[rows, follows + _DTYPE_AFTER] & np.uint64(0xFFFF)

    def _gradients(self, tensors: Words, batch: Batch) -> None:
        """Note gradients, and the graphs that tensors keep."""
        held = np.flatnonzero(tensors[:, _META] != 0)
        if not len(held):
            return
        metas = self._copy.words(tensors[held, _META], _META_WORDS)
        right = self.of_torch(metas[:, 0])
        held, metas = held[right], metas[right]
        gradients = self._copy.words(metas[:, _GRADIENT], _TENSOR_WORDS)
        real = np.isin(gradients[:, 0], np.array(sorted(self.tensor_classes), dtype=np.uint64))
        if real.any():
            own = batch.at(held[real])
            below = self._numbered.children(own.nodes, " grad")
            places = metas[real, _GRADIENT]
            self.note_tensors(
                gradients[real], Batch(addresses=places, nodes=below, weights=own.weights)
            )
        starts = self._copy.word(metas[:, _HISTORY])
        for i in np.flatnonzero(self.of_torch(starts)).tolist():
            self.histories.append((int(metas[i, _HISTORY]), int(batch.nodes[held[i]])))
