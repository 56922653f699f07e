"""Finds numpy's arrays in a process, from outside.

An array is a small Python object: how often it is held, its type, the place of its numbers, how
many dimensions, and so on. The type lies in numpy's own data, so that arrays are known by it;
not so those of other classes, nor in a Python without its lock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from memfit.measure.kernel.mappings import Mapping
from memfit.measure.kernel.process_memory import ProcessMemory, Span
from memfit.measure.live.heap import Words, copy_of
from memfit.measure.live.mapping_layers import library_name

_NUMPY = "_multiarray_umath"
# Words of an array, counted from its type, and what they can be.
_HELD, _DATA, _DIMENSIONS, _FLAGS, _WORDS = -1, 1, 2, 7, 8
_MOST_HELD, _MOST_DIMENSIONS, _OWNS_ITS_DATA = 2**32, 64, 4
_PIECE = 64 * 2**20  # looked at at once


def data_of_arrays(
    objects: Sequence[Span], maps: Sequence[Mapping], memory: ProcessMemory
) -> Words:
    """Where arrays that own their numbers have them; arrays lie among Python's small `objects`."""
    own = [m for m in maps if m.writable and m.path and library_name(m.path) == _NUMPY]
    found = []
    if own:
        types = min(m.start for m in own), max(m.end for m in own)
        found = [_data(copy_of(piece, memory).words, types) for piece in _pieces(objects)]
    return np.unique(np.concatenate([np.zeros(0, dtype=np.uint64), *found]))


def _pieces(spans: Sequence[Span]) -> Iterator[Span]:
    for start, end in spans:
        for a in range(start, end, _PIECE):
            yield a, min(end, a + _PIECE)


def _data(words: Words, types: Span) -> Words:
    # Below the first there is no number without a sign: it is a large one.
    at = np.flatnonzero(words - np.uint64(types[0]) < np.uint64(types[1] - types[0]))
    at = at[(at > 0) & (at + _WORDS <= len(words))]
    held, flags = words[at + _HELD], words[at + _FLAGS] & np.uint64(_OWNS_ITS_DATA)
    dimensions = words[at + _DIMENSIONS] & np.uint64(2**32 - 1)
    likely = (held > 0) & (held < _MOST_HELD) & (dimensions <= _MOST_DIMENSIONS) & (flags > 0)
    return words[at[likely] + _DATA]
