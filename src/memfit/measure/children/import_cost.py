"""Measures the memory that importing a run's libraries takes, once a version."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
from importlib import metadata

from memfit.measure.children.user_cache import CachedJson
from memfit.measure.kernel.proc import tree_memory

_PROGRAM = """
import os, sys
for name in sys.argv[2:]:
    __import__(name)
os.write(int(sys.argv[1]), b"ready")
sys.stdin.read()
"""


def import_cost(modules: tuple[str, ...], *, timeout: float = 60.0) -> int:
    """The memory of a child that has imported these modules, as if alone on the machine.

    It is kept by their versions, if all have one; 0 where they cannot be imported.
    """
    key = _key(modules)
    cache = CachedJson("import-base.json")
    known = cache.load()
    if not isinstance(known, dict):
        known = {}
    if key in known:
        return int(known[key])
    cost = _measure(modules, timeout)
    if key and cost:
        cache.save({**known, key: cost})
    return cost


def _measure(modules: tuple[str, ...], timeout: float) -> int:
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
    try:
        heard, _, _ = select.select([ready], [], [], timeout)
        return tree_memory(process.pid).alone if heard and os.read(ready, 5) else 0
    finally:
        os.close(ready)
        process.kill()
        process.communicate()


def _key(modules: tuple[str, ...]) -> str:
    """Names and versions; nothing where one has none, as the user's own modules."""
    python = f"python {sys.version.split()[0]} {sys.executable}"
    versions = [(name, _version(name.partition(".")[0])) for name in modules]
    if not all(version for _, version in versions):
        return ""
    return "; ".join([python, *(f"{name} {version}" for name, version in versions)])


def _version(package: str) -> str:
    with contextlib.suppress(metadata.PackageNotFoundError):
        return metadata.version(package)
    # A distribution of another name, which takes long to find.
    names = metadata.packages_distributions().get(package, ())
    return next((metadata.version(name) for name in names), "")
