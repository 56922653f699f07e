"""Classes that a file takes from files beside it: those are read too, and never imported."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from memfit.syntax.source import Source

_MOST_BYTES = 1 << 20
_DEPTH = 4
_MOST_BESIDE = 200  # files
_PLAIN = {"object", "ABC", "Generic", "Protocol"}
Owned = tuple[Source, ast.ClassDef]


def family(source: Source, node: ast.ClassDef, depth: int = _DEPTH) -> list[Owned] | None:
    """A class and those that it is made of, each with its file; None where one is not to be had."""
    found: list[Owned] = [(source, node)]
    for base in node.bases:
        named = base.value if isinstance(base, ast.Subscript) else base
        own = source.definition(named)
        if isinstance(own, ast.ClassDef) and own is not node:
            above = family(source, own, depth - 1) if depth else None
        elif (source.qualified(named) or ast.unparse(named)).split(".")[-1] in _PLAIN:
            continue
        else:
            above = _imported(source, source.qualified(named), depth)
        if above is None:
            return None
        found += above
    return found


def read_beside(source: Source, attribute: str) -> bool:
    """Whether a file beside this one may read an attribute of that name; yes if they are many."""
    path = Path(source.path).absolute()
    if not path.is_file():
        return False
    above = path.parent
    patterns = [
        (above, "*.py"),
        (above, "*/*.py"),
        (above.parent, "*.py"),
        (above.parent, "*/*.py"),
    ]
    beside = dict.fromkeys(p for root, pattern in patterns for p in root.glob(pattern))
    read = re.compile(rb"\.%s\b" % attribute.encode())
    for count, file in enumerate(beside):
        if count >= _MOST_BESIDE:
            return True
        try:
            if (
                file != path
                and file.stat().st_size <= _MOST_BYTES
                and read.search(file.read_bytes())
            ):
                return True
        except OSError:
            continue
    return False


def _imported(source: Source, name: str, depth: int) -> list[Owned] | None:
    module, _, last = name.rpartition(".")
    if not module or not depth:
        return None
    for path in _files(Path(source.path), module):
        other = _read(path)
        for node in other.nodes(ast.ClassDef) if other is not None else []:
            if node.name == last and other is not None:
                return family(other, node, depth - 1)
    return None


def _files(path: Path, module: str) -> Iterator[Path]:
    """Where a module may be that a file imports: below one of the folders that the file is in."""
    folders = list(path.absolute().parents)
    dots = len(module) - len(module.lstrip("."))
    if dots:
        folders = folders[dots - 1 : dots]
    inner = Path(*module.lstrip(".").split(".")).with_suffix(".py")
    yield from (folder / inner for folder in folders if (folder / inner).is_file())


def _read(path: Path) -> Source | None:
    try:
        if path.stat().st_size > _MOST_BYTES:
            return None
        return Source(path.read_bytes(), str(path))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None
