"""Tensors that the graphs of kept tensors keep for a backward pass, found from outside.

A tensor that was computed has a C++ object that knows how: it holds what the gradient needs, and
the objects of the tensors before it. No Python object leads to these.
"""

from __future__ import annotations

import numpy as np

from memfit.measure.live.outside_walk.batches import Batch, NumberedTree
from memfit.measure.live.outside_walk.memory_copy import MemoryCopy, Words
from memfit.measure.live.outside_walk.number_blocks import Mark, NumberBlocks

GRAPH = " graph"
_WORDS = 256  # of an object of a graph, at most
_LEAST_WORDS = 16
_TENSOR_WORDS = 24
_MOST_STEPS = 100_000


class KeptGraphs:
    """Follows the graphs that were met."""

    def __init__(
        self, blocks: NumberBlocks, names: NumberedTree, copy: MemoryCopy, mark: Mark
    ) -> None:
        self._blocks, self._names, self._copy, self._mark = blocks, names, copy, mark

    def follow(self) -> None:
        """Note the tensors of all graphs, each for the holder that reaches it first."""
        found, self._blocks.histories = self._blocks.histories, []
        if not found:
            return
        nodes = self._names.children(np.array([node for _, node in found]), GRAPH)
        level = Batch(
            addresses=np.array([place for place, _ in found], dtype=np.uint64),
            nodes=nodes,
            weights=np.ones(len(found), dtype=np.int64),
        )
        for _ in range(_MOST_STEPS):
            level = level.at(self._mark(level.addresses))
            if not len(level):
                break
            level = self._step(level)

    def _step(self, level: Batch) -> Batch:
        """What the objects of one level lead to."""
        words = self._own_words(level)
        rows, columns = np.nonzero(words > np.uint64(2**16))
        targets = words[rows, columns]
        there = self._copy.readable(targets, 8 * _TENSOR_WORDS) & ~self._blocks.of_torch(targets)
        targets, rows = targets[there], rows[there]
        firsts = self._copy.word(targets)
        one = Batch(addresses=targets, nodes=level.nodes[rows], weights=level.weights[rows])
        classes = np.array(sorted(self._blocks.tensor_classes), dtype=np.uint64)
        tensors = np.isin(firsts, classes)
        if tensors.any():
            kept = one.at(tensors)
            self._blocks.note_tensors(self._copy.words(kept.addresses, _TENSOR_WORDS), kept)
        objects = self._blocks.of_torch(firsts) & ~tensors
        # A list of what an object leads to is a block of its own, which begins with the first.
        begins = self._copy.readable(firsts) & ~objects & ~tensors
        begins[begins] = self._blocks.of_torch(self._copy.word(firsts[begins]))
        return one.at(objects | begins)

    def _own_words(self, level: Batch) -> Words:
        """The words of objects, as many as malloc says that each has."""
        heads = self._copy.word(level.addresses - np.uint64(8)) & ~np.uint64(7)
        sound = (heads >= 32) & (heads <= 8 * _WORDS)
        sizes = np.where(sound, heads // np.uint64(8), np.uint64(_LEAST_WORDS)).astype(np.int64)
        room = self._copy.room(level.addresses) // 8
        most = int(np.minimum(sizes, room).max())
        words = np.zeros((len(level), most), dtype=np.uint64)
        for end in (most, _LEAST_WORDS):  # what lies at the end of a mapping is read by less
            fits = (room >= end) & (words[:, 0] == 0)
            words[fits, :end] = self._copy.words(level.addresses[fits], end)[:, :most]
        words[np.arange(most)[None, :] >= sizes[:, None] - 1] = 0
        return words
