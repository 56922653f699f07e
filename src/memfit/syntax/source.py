"""One file of Python: its tree, who stands in whom, and what its names stand for."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import TypeVar

from memfit.syntax.bindings import SCOPES, Binding, BindingKind, bindings_of

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_Node = TypeVar("_Node", bound=ast.AST)
_MOST_ALIASES = 5


class Source:
    """The text of one file, parsed; `SyntaxError` where it is no Python."""

    def __init__(self, text: str | bytes, path: str = "<text>") -> None:
        self.path = path
        self.text = text if isinstance(text, str) else text.decode("utf-8", "replace")
        self.tree = ast.parse(text, filename=path)
        self._parents: dict[ast.AST, ast.AST] = {}
        self._by_type: dict[type[ast.AST], list[ast.AST]] = defaultdict(list)
        self._bindings: dict[ast.AST, dict[str, list[Binding]]] = {}
        self._names: dict[ast.AST, str] = {}
        self._all_imports: dict[int, bool] = {}
        self._visit(self.tree)

    def _visit(self, root: ast.AST) -> None:
        waiting = [root]
        while waiting:  # in the order of the text
            node = waiting.pop()
            self._by_type[type(node)].append(node)
            children = list(ast.iter_child_nodes(node))
            for child in children:
                self._parents[child] = node
            waiting.extend(reversed(children))

    # -- nodes -------------------------------------------------------------------------------------

    def nodes(self, kind: type[_Node]) -> list[_Node]:
        """All nodes of one type, in the order of the text."""
        return self._by_type[kind]  # type: ignore[return-value]

    def parent(self, node: ast.AST) -> ast.AST | None:
        """The node that a node is a direct part of."""
        return self._parents.get(node)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, the innermost first."""
        above = self._parents.get(node)
        while above is not None:
            yield above
            above = self._parents.get(above)

    def function(self, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The function that a node stands in; a lambda is none."""
        for above in self.ancestors(node):
            if isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef):
                return above
        return None

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        """The class that a node stands in."""
        for above in self.ancestors(node):
            if isinstance(above, ast.ClassDef):
                return above
        return None

    def scope(self, node: ast.AST) -> ast.AST:
        """The function, class or module whose names a node uses first."""
        return next((a for a in self.ancestors(node) if isinstance(a, SCOPES)), self.tree)

    # -- names -------------------------------------------------------------------------------------

    def bindings(self, name: ast.Name) -> list[Binding]:
        """What may have given a name its value: all bindings of the nearest scope that has any."""
        scope: ast.AST | None = self.scope(name)
        inner = True
        while scope is not None:
            # Names of a class body are not seen by the functions in it.
            if (inner or not isinstance(scope, ast.ClassDef)) and (
                found := self._bindings_of(scope).get(name.id)
            ):
                return found
            inner = False
            scope = None if scope is self.tree else self.scope(scope)
        return []

    def bindings_in(self, scope: ast.AST, name: str) -> list[Binding]:
        """What gives a name its value in one scope."""
        return self._bindings_of(scope).get(name, [])

    def names_in(self, scope: ast.AST) -> list[str]:
        """The names that a scope gives a value to."""
        return list(self._bindings_of(scope))

    def _bindings_of(self, scope: ast.AST) -> dict[str, list[Binding]]:
        if scope not in self._bindings:
            self._bindings[scope] = bindings_of(scope)
        return self._bindings[scope]

    def qualified(self, node: ast.AST | None) -> str:
        """The full name of what was imported (`np.zeros`: numpy.zeros); empty if it was not."""
        if not isinstance(node, ast.Name | ast.Attribute):
            return ""
        if node not in self._names:
            self._names[node] = self._qualified(node, _MOST_ALIASES)
        return self._names[node]

    def _qualified(self, node: ast.AST | None, aliases: int) -> str:
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        base = self._imported(self.bindings(node), aliases) if isinstance(node, ast.Name) else ""
        return ".".join([base, *reversed(parts)]) if base else ""

    def _imported(self, found: list[Binding], aliases: int) -> str:
        """What bindings of a name import, if all of them do, or if it is one name for another."""
        if not found or aliases <= 0:
            return ""
        if len(found) == 1 and isinstance(found[0].value, ast.Name | ast.Attribute):
            return self._qualified(found[0].value, aliases - 1)
        if found[-1].kind is not BindingKind.IMPORT:
            return ""
        if id(found) not in self._all_imports:  # bindings are made once and kept
            self._all_imports[id(found)] = all(b.kind is BindingKind.IMPORT for b in found)
        return found[-1].qualified if self._all_imports[id(found)] else ""

    def definition(self, node: ast.AST | None) -> ast.AST | None:
        """The function or class of this file that a name stands for."""
        if not isinstance(node, ast.Name):
            return None
        found = self.bindings(node)
        if len(found) == 1 and found[0].kind is BindingKind.DEFINITION:
            return found[0].node
        return None

    def loads(self, name: str) -> list[ast.Name]:
        """Where a name of that spelling is read, anywhere in the file."""
        return [n for n in self.nodes(ast.Name) if n.id == name and isinstance(n.ctx, ast.Load)]

    def loads_of(self, scope: ast.AST, name: str) -> list[ast.Name]:
        """Where a scope's own name is read, also by the functions in it."""
        own = self.bindings_in(scope, name)
        return [n for n in self.loads(name) if own and self.bindings(n) is own]

    @cached_property
    def packages(self) -> frozenset[str]:
        """The top-level packages that the file imports anywhere."""
        found = {a.name.split(".")[0] for n in self.nodes(ast.Import) for a in n.names}
        found |= {(n.module or "").split(".")[0] for n in self.nodes(ast.ImportFrom) if not n.level}
        return frozenset(found - {""})

    def segment(self, node: ast.AST) -> str:
        """A node as it is written, in one line."""
        return " ".join(ast.unparse(node).split())


def last_name(node: ast.AST | None) -> str:
    """The last part of a dotted name: `self.memory.push` is push; empty for what is no name."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def dotted(node: ast.AST | None) -> str:
    """A name as it is written, `self.memory`; empty for what is more than a name."""
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr}" if base else ""
    return node.id if isinstance(node, ast.Name) else ""
