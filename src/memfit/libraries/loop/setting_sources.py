"""Settings where a program reads them: from its command line by argparse, and from files.

What is read in YAML, JSON and TOML becomes known here, and gets the values that are asked for.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

from memfit.libraries.loop.constants import whole_number
from memfit.model.training import ModuleHook

_READERS = {"json": ("loads",), "yaml": ("load",), "tomllib": ("load", "loads")}
_DEPTH, _MOST = 4, 200  # a larger file has data
_FILES = 50


class SettingSources:
    """Notes what is read, and gives it the values of `knobs`."""

    def __init__(self, knobs: Mapping[str, int]) -> None:
        self.knobs = knobs
        self.values: dict[str, int] = {}
        self._files = 0

    def hooks(self) -> dict[str, ModuleHook]:
        """By module, what to change in it."""
        readers = {module: self._watch_reader(names) for module, names in _READERS.items()}
        return {"argparse": self._watch_argparse, **readers}

    def _watch_argparse(self, module: ModuleType) -> None:
        parser: Any = module.ArgumentParser
        parse = parser.parse_known_args

        @functools.wraps(parse)
        def parsed(*args: Any, **kwargs: Any) -> Any:
            namespace, rest = parse(*args, **kwargs)
            self._take(vars(namespace))
            return namespace, rest

        parser.parse_known_args = parsed

    def _watch_reader(self, names: tuple[str, ...]) -> ModuleHook:
        def hook(module: ModuleType) -> None:
            for name in names:
                setattr(module, name, self._read(getattr(module, name)))

        return hook

    def _read(self, read: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(read)
        def reading(*args: Any, **kwargs: Any) -> Any:
            found = read(*args, **kwargs)
            if type(found) is dict and self._files < _FILES:
                parts = list(_dicts(found, _DEPTH))
                if sum(map(len, parts)) <= _MOST:
                    self._files += 1
                    for part in parts:
                        self._take(part)
            return found

        return reading

    def _take(self, found: dict[Any, Any]) -> None:
        for name, value in found.items():
            if not (type(name) is str and name.isidentifier()):
                continue
            if name in self.knobs and (value is None or whole_number(value) is not None):
                found[name] = self.knobs[name]
            number = whole_number(found[name])
            if number is not None:
                self.values.setdefault(name, number)


def _dicts(thing: Any, depth: int) -> Iterator[dict[Any, Any]]:
    if type(thing) is dict and depth:
        yield thing
        for value in list(thing.values())[: _MOST + 1]:
            yield from _dicts(value, depth - 1)
