"""Sums up what the walk found, in one row for each holder."""

from __future__ import annotations

import collections
from typing import Any

from .array_blocks import (  # noqa: TID252 - also loaded by path, under another name
    ArrayBlock,
    Blocks,
    Small,
)
from .paths import ANY, Node, Tree  # noqa: TID252

MOST_ROWS = 200
_APART = 2**20  # elements of a short list that are at least so large have rows of their own
LEAST_ROW = 65536  # smaller sums of Python objects count for the holder above
_REST = "the rest"
_OUTSIDE = {"package": "{} (package)", "unreached": "held by C code alone ({})"}
_OTHER = "other objects of the run"


class Row:
    """One holder's arrays."""

    def __init__(self, holder: str, library: str, device: str) -> None:
        self.holder, self.library, self.device = holder, library, device
        self.nbytes = self.count = self.views = self.small = 0
        self.largest: tuple[int, str, tuple[int, ...]] = (-1, "", ())
        self.memory, self.mapping = "own", ""
        self.extents: list[tuple[int, int]] = []
        self.also: list[str] = []

    def add(self, block: ArrayBlock) -> None:
        self.nbytes += block.nbytes
        self.count += 1
        self.views += block.views
        self.extents.append((block.start, block.nbytes))
        self.largest = max(self.largest, (block.nbytes, block.dtype, block.shape))
        if block.memory != "own":
            self.memory, self.mapping = block.memory, block.mapping
        for node in block.also:
            path = node.path()
            if len(self.also) < 3 and path != self.holder and path not in self.also:
                self.also.append(path)

    def add_small(self, sums: Small) -> None:
        self.nbytes += sums.nbytes
        self.small += sums.nbytes
        self.count += sums.count
        share = sums.nbytes // max(1, sums.count)
        self.largest = max(self.largest, (share, sums.dtype, sums.shape))

    def fields(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "holder": self.holder,
            "nbytes": self.nbytes,
            "count": self.count,
            "views": self.views,
            "dtype": self.largest[1],
            "shape": list(self.largest[2]),
            "library": self.library,
            "device": self.device,
            "memory": self.memory,
            "extents": _merged(self.extents) if self.device == "cpu" else [],
            "small_bytes": self.small,
            "also": self.also,
        }
        if self.mapping:
            found["mapping"] = self.mapping
        return found


def array_rows(
    blocks: Blocks, maps: str = "/proc/self/maps", *, most: int = MOST_ROWS
) -> list[dict[str, Any]]:
    """Arrays and tensors by holder, largest first; `maps` lists the process's mappings."""
    whole = blocks.settle(maps)
    on_cpu = [block for block in whole if block.device == "cpu"]
    starts = [block.start for block in on_cpu]
    totals: collections.Counter[str] = collections.Counter()
    for block in whole:
        totals[block.node.path()] += block.nbytes
    rows: dict[tuple[str, str, str], Row] = {}

    def row(node: Node, library: str, device: str, kind: str = "") -> Row:
        path = node.path()
        if totals[path] < _APART:
            path = node.path(numbered=False)
        if node.kind != "run":
            path = _OUTSIDE[node.kind].format(path)
        key = (path, library, device + kind)
        if key not in rows:
            rows[key] = Row(path, library, device)
        return rows[key]

    for block in whole:
        row(block.node, block.library, block.device, block.memory).add(block)
    for node in blocks.tree.all():
        sums = node.small_arrays
        if isinstance(sums, Small):
            blocks.without_views(sums, on_cpu, starts)
            if sums.count > 0:
                row(node, sums.library, sums.device, "own").add_small(sums)
    found = sorted(rows.values(), key=lambda r: (-r.nbytes, r.holder))
    told = [r.fields() for r in found[:most]]
    rest = found[most:]
    if rest:
        last = Row(_REST, "", "cpu")
        for r in rest:
            last.nbytes += r.nbytes
            last.count += r.count
            last.views += r.views
            last.small += r.small
            if r.device == "cpu":
                last.extents.extend(r.extents)
        told.append(last.fields())
    return told


def _merged(extents: list[tuple[int, int]]) -> list[list[int]]:
    """Extents in order, those that touch as one."""
    found: list[list[int]] = []
    for start, nbytes in sorted(extents):
        if found and start <= found[-1][0] + found[-1][1]:
            found[-1][1] = max(found[-1][1], start + nbytes - found[-1][0])
        else:
            found.append([start, nbytes])
    return found


def python_rows(
    tree: Tree, *, most: int = MOST_ROWS, least: int = LEAST_ROW
) -> list[dict[str, Any]]:
    """Python objects by holder, largest first; what is small counts for the holder above.

    That is added up in the tree itself, which is of no more use afterwards.
    """
    found: list[Node] = []
    other = Node(_OTHER, None)
    for node in reversed(tree.all()):
        folds = node.small + node.large < least or node.step == ANY or node.indexed
        if folds and node.parent is not None:
            _fold(node, node.parent)
        elif folds and node.kind == "run":
            _fold(node, other)
        else:
            found.append(node)
    found = [node for node in (*found, other) if node.objects]
    found.sort(key=lambda node: (-node.small - node.large, node.path()))
    if len(found) > most:
        rest = Node(_REST, None)
        for node in found[most:]:
            _fold(node, rest)
        found[most:] = [rest]
    return [_python_row(node) for node in found]


def _fold(node: Node, into: Node) -> None:
    into.small += node.small
    into.large += node.large
    into.objects += node.objects


def _python_row(node: Node) -> dict[str, Any]:
    found: dict[str, Any] = {
        "holder": node.path(),
        "kind": node.kind,
        "nbytes": node.small + node.large,
        "small_bytes": node.small,
        "large_bytes": node.large,
        "objects": node.objects,
    }
    if node.elements:
        found["elements"] = node.elements
    return found
