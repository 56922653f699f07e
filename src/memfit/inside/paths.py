"""Names holders by their path from the run's variables."""

from __future__ import annotations

_MOST_NODES = 20_000
_DEEPEST = 14
ANY = "[*]"
# Steps that say nothing to a reader.
_SILENT = {"_parameters", "_modules", "_buffers"}


class Node:
    """One place in the tree, and what is held there."""

    __slots__ = (
        *("children", "depth", "elements", "indexed", "kind", "large", "layouts"),
        *("name", "objects", "parent", "small", "small_arrays", "step"),
    )

    def __init__(self, step: str, parent: Node | None, *, kind: str = "run") -> None:
        self.step = step
        self.parent = parent
        self.kind: str = parent.kind if parent is not None else kind
        self.depth: int = parent.depth + 1 if parent is not None else 0
        self.children: dict[str, Node] = {}
        self.layouts: dict[tuple[int, int], list[str | None]] = {}  # by type's address
        self.name = ""  # what stands for the whole way up to here, where something does
        self.indexed = False  # the step is a number of a short list
        self.small = self.large = self.objects = self.elements = 0
        self.small_arrays: object = None

    def path(self, *, numbered: bool = True) -> str:
        """The way from the top, as a reader would write it.

        Without numbers, `[*]` stands for those of lists, for grouping what is small.
        """
        steps: list[str] = []
        node: Node | None = self
        while node is not None:
            steps.append(node.name or (node.step if numbered or not node.indexed else ANY))
            node = None if node.name else node.parent
        return "".join(reversed(steps)).lstrip(".")


class Tree:
    """All nodes; when there are too many, what is below the last ones counts as theirs."""

    def __init__(self) -> None:
        self.tops: dict[str, Node] = {}
        self.nodes = 0

    def top(self, name: str, *, kind: str = "run") -> Node:
        found = self.tops.get(f"{kind}:{name}")
        if found is None:
            found = self.tops[f"{kind}:{name}"] = Node(name, None, kind=kind)
            self.nodes += 1
        return found

    def child(self, node: Node, step: str, *, indexed: bool = False, linked: bool = False) -> Node:
        """The node one step below; the same one where things of one type are linked on and on."""
        if not step or (linked and step == node.step):
            return node
        found = node.children.get(step)
        if found is None:
            if node.depth >= _DEEPEST or self.nodes >= _MOST_NODES:
                return node
            found = node.children[step] = Node(step, node)
            found.indexed = indexed
            self.nodes += 1
        return found

    def all(self) -> list[Node]:
        """Every node, parents before their children."""
        found = list(self.tops.values())
        for node in found:
            found.extend(node.children.values())
        return found


def attribute(name: object) -> str:
    """The step to an attribute."""
    if type(name) is not str:
        return ANY
    return "" if name in _SILENT else f".{name}"


def key(name: object, *, among: int) -> str:
    """The step to a dictionary's value: by name where names are few."""
    if (type(name) is str and among <= 256) or (type(name) is int and among <= 8):
        return f"[{name!r}]"[:60]
    return ANY
