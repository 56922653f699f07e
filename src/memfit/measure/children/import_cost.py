"""Measures the memory that importing a run's libraries takes, once a version."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
from dataclasses import dataclass, replace
from importlib import metadata

from memfit.measure.children.user_cache import CachedJson
from memfit.measure.kernel.proc import tree_memory

_PROGRAM = """
import os, sys
for name in sys.argv[2:]:
    __import__(name)
os.write(int(sys.argv[1]), b"ready")
sys.stdin.readline()
with open(int(sys.argv[1]), "w") as file:
    file.write(" ".join(sys.modules))
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
    if cost.bytes:
        with_own = _measure((_OWN, *modules), timeout)
        cost = replace(cost, own=max(0, with_own.bytes - cost.bytes))
    if key and cost.bytes:
        cache.save({**known, key: [cost.bytes, sorted(cost.modules), cost.own, cost.files]})
    return cost


def _measure(modules: tuple[str, ...], timeout: float) -> ImportCost:
    ready, say = os.pipe()
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(say), *modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(say,),
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )
    finally:
        os.close(say)
    assert process.stdin is not None
    with open(ready, "rb", buffering=0) as told:
        try:
            heard, _, _ = select.select([told], [], [], timeout)
            if not (heard and told.read(5)):
                return ImportCost()
            held = tree_memory(process.pid)
            process.stdin.close()
            loaded = frozenset(told.read().decode().split(" "))
            files = held.main.files if held.main is not None else 0
            return ImportCost(bytes=held.alone, files=files, modules=loaded)
        finally:
            process.kill()
            process.wait()
            process.stdin.close()


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
