"""MF404: many threads may each keep an arena of malloc.

What: a pool of 16 threads or more is made, and nothing limits malloc's arenas.

Why: glibc gives each thread an arena of its own, up to 8 for a core. What a thread has freed stays
in its arena, and no other thread gets it. Reserved are 64 MiB each, which `ulimit -v` counts;
resident is what each thread held at its largest, together.

Bad:
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(max_workers=64)
    pool.map(rollout, envs)

Good:
    from concurrent.futures import ThreadPoolExecutor

    from memfit.dropins import apply_settings

    apply_settings(arenas=2)  # or MALLOC_ARENA_MAX=2 before the command
    pool = ThreadPoolExecutor(max_workers=64)
    pool.map(rollout, envs)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, argument, last_name, number

CODE = "MF404"
SEVERITY = Severity.INFO
OFF = "arenas are reserved, and mostly not resident: 25 threads had 192 MiB, of which 0.5 were"
FOUND = ("from multiprocessing.pool import ThreadPool\npool = ThreadPool(32)\n",)
CLEAN = ("from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(4)\n",)
_POOLS = {"ThreadPoolExecutor": "max_workers", "ThreadPool": "processes"}
_MANY = 16
_LIMITS = ("MALLOC_ARENA_MAX", "apply_settings", "mallopt", "jemalloc", "tcmalloc")


def find_in_source(source: Source) -> Iterator[Spot]:
    if any(word in source.text for word in _LIMITS):
        return
    for call in source.nodes(ast.Call):
        name = last_name(call.func)
        threads = number(source, argument(call, _POOLS[name], 0)) if name in _POOLS else None
        if threads is not None and threads >= _MANY:
            yield Spot(
                call,
                f"each of {threads} threads of {name} may keep an arena of malloc",
                "memfit.dropins.apply_settings(arenas=2) first of all, or MALLOC_ARENA_MAX=2",
            )
