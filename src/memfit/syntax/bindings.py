"""What gives the names of a scope their values."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

SCOPES = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


class BindingKind(StrEnum):
    """How a name gets its value."""

    IMPORT = "import"
    VALUE = "value"  # name = value
    ITEM = "item"  # a, b = value
    DEFINITION = "definition"  # def, class
    OTHER = "other"  # a parameter, a loop's variable, +=, with, except, del ...


@dataclass(frozen=True, kw_only=True)
class Binding:
    """One place that gives a name its value: what was imported, or the expression."""

    kind: BindingKind
    node: ast.AST
    qualified: str = ""
    value: ast.expr | None = None


def bindings_of(scope: ast.AST) -> dict[str, list[Binding]]:
    """All bindings of a scope's own names, in the order of the text."""
    found: dict[str, list[Binding]] = {}
    for name, binding in _bound(scope):
        found.setdefault(name, []).append(binding)
    return found


def own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a scope without those of the scopes in it, whose own node is yielded."""
    waiting = list(ast.iter_child_nodes(scope))
    if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        waiting = list(scope.body) if isinstance(scope.body, list) else [scope.body]
    waiting.reverse()
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, SCOPES):
            waiting.extend(reversed(list(ast.iter_child_nodes(node))))


def _bound(scope: ast.AST) -> Iterator[tuple[str, Binding]]:
    if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        for parameter in ast.walk(scope.args):
            if isinstance(parameter, ast.arg):
                yield parameter.arg, _other(parameter)
    for node in own_nodes(scope):
        yield from _bound_by(node)


def _bound_by(node: ast.AST) -> Iterator[tuple[str, Binding]]:
    match node:
        case ast.Import():
            for alias in node.names:
                name = alias.asname or alias.name.split(".")[0]
                yield name, _imported(node, alias.name if alias.asname else name)
        case ast.ImportFrom():
            for alias in node.names:
                module = "." * node.level + (node.module or "")
                yield alias.asname or alias.name, _imported(node, f"{module}.{alias.name}")
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name, Binding(kind=BindingKind.DEFINITION, node=node)
        case ast.Assign():
            for target in node.targets:
                yield from _assigned(node, target, node.value)
        case ast.AnnAssign() if node.value is not None:
            yield from _assigned(node, node.target, node.value)
        case ast.NamedExpr():
            yield from _assigned(node, node.target, node.value)
        case ast.AugAssign() | ast.For() | ast.AsyncFor():
            yield from _others(node.target)
        case ast.comprehension():
            yield from _others(node.target)
        case ast.With() | ast.AsyncWith():
            for item in node.items:
                if isinstance(item.optional_vars, ast.Name):
                    yield (
                        item.optional_vars.id,
                        Binding(kind=BindingKind.ITEM, node=node, value=item.context_expr),
                    )
                elif item.optional_vars is not None:
                    yield from _others(item.optional_vars)
        case ast.ExceptHandler() if node.name:
            yield node.name, _other(node)
        case ast.Delete():
            for target in node.targets:
                yield from _others(target)
        case ast.Global() | ast.Nonlocal():
            for name in node.names:
                yield name, _other(node)


def _assigned(node: ast.AST, target: ast.expr, value: ast.expr) -> Iterator[tuple[str, Binding]]:
    if isinstance(target, ast.Name):
        yield target.id, Binding(kind=BindingKind.VALUE, node=node, value=value)
    elif isinstance(target, ast.Tuple | ast.List):
        items = value.elts if isinstance(value, ast.Tuple | ast.List) else []
        if len(items) == len(target.elts) and not any(isinstance(i, ast.Starred) for i in items):
            for one, item in zip(target.elts, items, strict=True):
                yield from _assigned(node, one, item)
            return
        for name in ast.walk(target):
            if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                yield name.id, Binding(kind=BindingKind.ITEM, node=node, value=value)


def _others(target: ast.AST) -> Iterator[tuple[str, Binding]]:
    for name in ast.walk(target):
        if isinstance(name, ast.Name) and not isinstance(name.ctx, ast.Load):
            yield name.id, _other(target)


def _other(node: ast.AST) -> Binding:
    return Binding(kind=BindingKind.OTHER, node=node)


def _imported(node: ast.AST, qualified: str) -> Binding:
    return Binding(kind=BindingKind.IMPORT, node=node, qualified=qualified)
