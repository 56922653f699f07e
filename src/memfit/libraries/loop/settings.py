"""A script's own settings: where they are found, and how they are given other values.

They are whole numbers in what argparse, tyro, absl and OmegaConf give, in dataclasses and dicts of
settings, and constants in capitals of the main module.
"""

from __future__ import annotations

import argparse
import ast
import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

_DICTS = ("config", "cfg", "args", "hparams", "hyperparameters", "params", "settings")
_LARGEST = 10**12
_MOST = 200


def settings_in(variables: Iterable[tuple[str, Any]]) -> dict[str, int]:
    """Names and values, those of the innermost function first."""
    found: dict[str, int] = {}
    for name, thing in _with_own(variables):
        if name.isupper() and _is_setting(thing):
            found.setdefault(name, int(thing))
        for inner, value in _parts(name, thing):
            if isinstance(inner, str) and inner.isidentifier() and _is_setting(value):
                found.setdefault(inner, int(value))
    return found


def _with_own(variables: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Variables, and what the objects have whose methods are at work."""
    for name, thing in variables:
        yield name, thing
        if name == "self":
            yield from list(getattr(thing, "__dict__", {}).items())


def _parts(name: str, thing: Any) -> Iterator[tuple[Any, Any]]:
    kind = type(thing)
    if isinstance(thing, argparse.Namespace):
        yield from list(vars(thing).items())
    elif is_dataclass(thing) and not isinstance(thing, type):
        own = [field.name for field in fields(thing)]
        if len(own) <= _MOST:
            kept = getattr(thing, "__dict__", {})
            yield from ((field, kept[field]) for field in own if field in kept)
    elif kind is dict and name.lower() in _DICTS:
        yield from list(thing.items())[:_MOST]
    elif kind.__name__ == "DictConfig" and kind.__module__.startswith("omegaconf"):
        yield from thing.items()
    elif kind.__name__ == "FlagValues" and kind.__module__.startswith("absl"):
        yield from thing.flag_values_dict().items()


def _is_setting(value: Any) -> bool:
    return type(value) is int and 1 <= value <= _LARGEST


# -- other values --------------------------------------------------------------------------------


def with_argument_values(args: Iterable[str], knobs: Mapping[str, int]) -> list[str]:
    """A script's arguments, with the values of options that it was given changed."""
    words = list(args)
    for at, word in enumerate(words):
        option, equals, _ = word.partition("=")
        name = option.lstrip("-").replace("-", "_")
        if not option.startswith("-") or name not in knobs:
            continue
        if equals:
            words[at] = f"{option}={knobs[name]}"
        elif at + 1 < len(words):
            words[at + 1] = str(knobs[name])
    return words


def change_argparse(knobs: Mapping[str, int]) -> None:
    """Let every parser of argparse give these values for options that it knows."""
    parse = argparse.ArgumentParser.parse_known_args

    @functools.wraps(parse)
    def parsed(*args: Any, **kwargs: Any) -> Any:
        namespace, rest = parse(*args, **kwargs)
        for name, value in knobs.items():
            if hasattr(namespace, name):
                setattr(namespace, name, value)
        return namespace, rest

    argparse.ArgumentParser.parse_known_args = parsed  # type: ignore[method-assign]


def set_constants(tree: ast.AST, knobs: Mapping[str, int]) -> None:
    """Give a script's constants, and its classes' fields, other values."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef):
            for statement in node.body:
                _change(statement, knobs)
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(value, ast.Constant):
                    _set(value, str(key.value), knobs)


def _change(statement: ast.stmt, knobs: Mapping[str, int]) -> None:
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        for name in _constant_names(statement):
            if isinstance(statement.value, ast.Constant):
                _set(statement.value, name, knobs)


def _set(value: ast.Constant, name: str, knobs: Mapping[str, int]) -> None:
    if name in knobs and type(value.value) is int:
        value.value = knobs[name]


def settable(text: bytes) -> set[str]:
    """The settings that a script's text gives a value to, so that another can take its place."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return set()
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef):
            found |= {name for s in node.body for name in _constant_names(s)}
        elif isinstance(node, ast.Dict):
            found |= {str(k.value) for k in node.keys if isinstance(k, ast.Constant)}
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument":
            words = [str(a.value) for a in node.args if isinstance(a, ast.Constant)]
            found |= {word.lstrip("-").replace("-", "_") for word in words}
    return found


def _constant_names(statement: ast.stmt) -> list[str]:
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    value = getattr(statement, "value", None)
    if not isinstance(value, ast.Constant) or not _is_setting(value.value):
        return []
    return [target.id for target in targets if isinstance(target, ast.Name)]
