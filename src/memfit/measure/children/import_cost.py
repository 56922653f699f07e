"""Measures the memory that importing a run's libraries takes, once a version."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
from dataclasses import dataclass, replace
from importlib import metadata
from typing import IO

from memfit.measure.children.user_cache import CachedJson
from memfit.measure.kernel.proc import tree_memory

# Each line names modules to import; then it is held still until the next line comes.
_PROGRAM = """
import os, sys
for line in sys.stdin:
    for name in line.split():
        __import__(name)
    os.write(int(sys.argv[1]), (" ".join(sys.modules) + "\\n").encode())
"""


# What memfit has loaded in the child that runs a target, and a run of its own does not have.
_OWN = "memfit.child.own_modules"


@dataclass(frozen=True, kw_only=True)
class ImportCost:
    """The memory of a process that has only imported, and all modules that were loaded by that.

    `files` are pages of mapped files among `bytes`; `own` is what memfit's own modules add in the
    child that runs a target.
    """

    bytes: int = 0
    files: int = 0
    modules: frozenset[str] = frozenset()
    own: int = 0


def import_cost(modules: tuple[str, ...], *, timeout: float = 60.0) -> ImportCost:
    """What a child that has imported these modules holds, as if alone on the machine.

    It is kept by their versions, if all have one; nothing where they cannot be imported.
    """
    key = _key(modules)
    cache = CachedJson("import-cost.json")
    known = cache.load()
    if not isinstance(known, dict):
        known = {}
    with contextlib.suppress(KeyError, TypeError, ValueError):
        kept, names, own, files = known[key]
        cost = ImportCost(bytes=int(kept), files=int(files), own=int(own))
        return replace(cost, modules=frozenset(names))
    cost = _measure(modules, timeout)
    if key and cost.bytes:
        cache.save({**known, key: [cost.bytes, sorted(cost.modules), cost.own, cost.files]})
    return cost


def _measure(modules: tuple[str, ...], timeout: float) -> ImportCost:
    ready, say = os.pipe()
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(say)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(say,),
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )
    finally:
        os.close(say)
    try:
        with open(ready, "rb") as told:
            loaded = _imported(process, told, modules, timeout)
            if not loaded:
                return ImportCost()
            held = tree_memory(process.pid)
            files = held.main.files if held.main is not None else 0
            cost = ImportCost(bytes=held.alone, files=files, modules=frozenset(loaded))
            if not _imported(process, told, (_OWN,), timeout):
                return cost
            return replace(cost, own=max(0, tree_memory(process.pid).alone - cost.bytes))
    finally:
        process.kill()
        process.wait()
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()


def _imported(
    process: subprocess.Popen[bytes], told: IO[bytes], modules: tuple[str, ...], timeout: float
) -> list[str]:
    """All modules that are there once these are; nothing where they cannot be imported in time."""
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(" ".join(modules).encode() + b"\n")
        process.stdin.flush()
    heard, _, _ = select.select([told], [], [], timeout)
    return told.readline().decode().split() if heard else []


def _key(modules: tuple[str, ...]) -> str:
    """Names and versions; nothing where one has none, as the user's own modules."""
    python = f"python {sys.version.split()[0]} {sys.executable}"
    versions = [(name, _version(name.partition(".")[0])) for name in (*modules, "memfit")]
    if not all(version for _, version in versions):
        return ""
    return "; ".join([python, *(f"{name} {version}" for name, version in versions)])


def _version(package: str) -> str:
    with contextlib.suppress(metadata.PackageNotFoundError):
        return metadata.version(package)
    # A distribution of another name, which takes long to find.
    names = metadata.packages_distributions().get(package, ())
    return next((metadata.version(name) for name in names), "")
