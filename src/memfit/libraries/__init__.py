"""RL libraries, one file or folder each: where training begins, what is driven, how rows are named.

A module of this package that has a `LIBRARY` is found by itself. To add one, see CONTRIBUTING.md.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Iterator
from functools import cache

from memfit.model.training import Library


@cache
def all_libraries() -> tuple[Library, ...]:
    """Every library that memfit knows; importing them loads none of the libraries themselves."""
    return tuple(_found())


def _found() -> Iterator[Library]:
    for module in pkgutil.iter_modules(__path__):
        library = getattr(importlib.import_module(f"{__name__}.{module.name}"), "LIBRARY", None)
        if library is not None:
            yield library


def library_of(name: str) -> Library:
    """The library of that name, as a `RunSpec` has it."""
    return next(library for library in all_libraries() if library.name == name)


def likely_library(modules: Iterable[str]) -> Library | None:
    """The library that a program which imports these modules trains with, as far as that tells."""
    tops = {name.partition(".")[0] for name in modules}
    found = [library for library in all_libraries() if tops & set(library.packages)]
    return max(found, key=lambda library: _told(library, tops), default=None)


def _told(library: Library, tops: set[str]) -> tuple[bool, int, int]:
    """How much speaks for a library: itself, what else of it is imported, how special it is."""
    own = library.packages[0] in tops
    return own, len(tops & set(library.packages)), len(library.imports)


def all_roles() -> dict[str, str]:
    """What classes of all libraries are in a training."""
    return {name: role for library in all_libraries() for name, role in library.roles.items()}


def extra_of(package: str) -> str:
    """The extra of memfit that brings a package; empty where none does."""
    found = (library.extra for library in all_libraries() if package in library.packages)
    return next(found, "")
