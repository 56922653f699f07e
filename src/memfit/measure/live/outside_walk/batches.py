"""Objects that the walk has still to look at, many together, and the tree of their holders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memfit.inside.paths import Node, Tree
from memfit.measure.live.outside_walk.memory_copy import Addresses, Indices

Weights = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Objects by address, the number of the holder of each, and how many each stands for."""

    addresses: Addresses
    nodes: Indices
    weights: Weights

    def __len__(self) -> int:
        return len(self.addresses)

    def at(self, chosen: NDArray[np.int64] | NDArray[np.bool_]) -> Batch:
        return Batch(
            addresses=self.addresses[chosen],
            nodes=self.nodes[chosen],
            weights=self.weights[chosen],
        )

    @classmethod
    def of(cls, addresses: Sequence[int], nodes: Sequence[int]) -> Batch:
        return cls(
            addresses=np.array(addresses, dtype=np.uint64),
            nodes=np.array(nodes, dtype=np.int64),
            weights=np.ones(len(addresses), dtype=np.int64),
        )

    @classmethod
    def joined(cls, parts: Sequence[Batch]) -> Batch:
        if not parts:
            return cls.of([], [])
        if len(parts) == 1:
            return parts[0]
        return cls(
            addresses=np.concatenate([part.addresses for part in parts]),
            nodes=np.concatenate([part.nodes for part in parts]),
            weights=np.concatenate([part.weights for part in parts]),
        )


class NumberedTree:
    """The tree of holders, with a number for each."""

    def __init__(self) -> None:
        self.tree = Tree()
        self.nodes: list[Node] = []
        self._numbers: dict[int, int] = {}

    def number(self, node: Node) -> int:
        found = self._numbers.get(id(node))
        if found is None:
            found = self._numbers[id(node)] = len(self.nodes)
            self.nodes.append(node)
        return found

    def top(self, name: str, *, kind: str = "run") -> int:
        return self.number(self.tree.top(name, kind=kind))

    def below(self, number: int, step: str, *, indexed: bool = False, linked: bool = False) -> int:
        node = self.tree.child(self.nodes[number], step, indexed=indexed, linked=linked)
        return self.number(node)

    def children(self, numbers: Indices, step: str, *, indexed: bool = False) -> Indices:
        """The holders one step below each of these."""
        if not step:
            return numbers
        own, inverse = np.unique(numbers, return_inverse=True)
        found = [self.below(n, step, indexed=indexed) for n in own.tolist()]
        return np.array(found, dtype=np.int64)[inverse]

    def by_step(self, numbers: Indices, steps: Indices, texts: Sequence[str]) -> Indices:
        """The holders below each of these, each by its own step, a number into `texts`."""
        pairs = numbers * len(texts) + steps
        own, inverse = np.unique(pairs, return_inverse=True)
        found = [self.below(p // len(texts), texts[p % len(texts)]) for p in own.tolist()]
        return np.array(found, dtype=np.int64)[inverse]

    def add(
        self,
        batch: Batch,
        small: Indices,
        large: Indices,
        elements: Indices | None = None,
        *,
        count: bool = True,
    ) -> None:
        """Count objects for their holders, or only what they take beside."""
        own, inverse = np.unique(batch.nodes, return_inverse=True)
        sums = [np.bincount(inverse, weights=w * batch.weights) for w in (small, large)]
        counts = np.bincount(inverse, weights=batch.weights)
        most = np.zeros(len(own), dtype=np.int64)
        if elements is not None:
            np.maximum.at(most, inverse, elements)
        for i, number in enumerate(own.tolist()):
            node = self.nodes[number]
            node.small += int(sums[0][i])
            node.large += int(sums[1][i])
            node.objects += int(counts[i]) if count else 0
            node.elements = max(node.elements, int(most[i]))
