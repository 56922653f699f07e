"""Calls of known functions, and their arguments by name or place."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from memfit.syntax.source import Source


def calls(source: Source, packages: Collection[str], names: Collection[str]) -> Iterator[ast.Call]:
    """Calls of functions or classes of some packages, however they were imported.

    `stable_baselines3.ppo.PPO` and `stable_baselines3.PPO` are the same: what counts is the
    package and the last name.
    """
    for call in source.nodes(ast.Call):
        if in_package(source, call.func, packages, names):
            yield call


def in_package(
    source: Source, node: ast.AST | None, packages: Collection[str], names: Collection[str]
) -> bool:
    """Whether a name stands for one of these names of one of these packages."""
    parts = source.qualified(node).split(".")
    return parts[0] in packages and parts[-1] in names and len(parts) > 1


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """The value of a keyword argument."""
    return next((k.value for k in call.keywords if k.arg == name), None)


def argument(call: ast.Call, name: str, place: int | None = None) -> ast.expr | None:
    """An argument by its keyword, or by its place (from 0) where that is certain."""
    found = keyword(call, name)
    if found is not None or place is None or place >= len(call.args):
        return found
    if any(isinstance(a, ast.Starred) for a in call.args[: place + 1]):
        return None
    return call.args[place]


@dataclass(frozen=True)
class Arguments:
    """The arguments of a call; `complete` says that none is hidden in *args or **kwargs."""

    call: ast.Call

    @property
    def complete(self) -> bool:
        starred = any(isinstance(a, ast.Starred) for a in self.call.args)
        return not starred and all(k.arg is not None for k in self.call.keywords)

    def lacks(self, name: str, place: int | None = None) -> bool:
        """Whether it is certain that this argument is not given."""
        return self.complete and argument(self.call, name, place) is None
