"""MF508: a profiler keeps its snapshots.

What: snapshots of tracemalloc go into a list.

Why: a snapshot holds a trace for every block that is allocated, so that what is measured grows by
the measuring: 23 MB in a profile of an env that did not grow at all. Two of them, or the sums of
each, tell the same.

Bad:
    import tracemalloc

    for frame in range(10_000):
        env.step(action)
        snapshots.append(tracemalloc.take_snapshot())

Good:
    import tracemalloc

    before = tracemalloc.take_snapshot()
    for frame in range(10_000):
        env.step(action)
    after = tracemalloc.take_snapshot()
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, calls, last_name, origin

CODE = "MF508"
SEVERITY = Severity.WARNING
FOUND = (
    (
        "import tracemalloc\nclass P:\n    def look(self):\n"
        "        snapshot = tracemalloc.take_snapshot()\n        self.snapshots.append(snapshot)\n"
    ),
)


def find_in_source(source: Source) -> Iterator[Spot]:
    taken = set(calls(source, ("tracemalloc",), ("take_snapshot",)))
    for call in source.nodes(ast.Call) if taken else []:
        if last_name(call.func) != "append" or len(call.args) != 1:
            continue
        first = call.args[0]
        parts = first.elts if isinstance(first, ast.Tuple) else [first]
        if any(origin(source, part) in taken for part in parts):
            yield Spot(
                call,
                "every snapshot is kept, and each holds a trace for every block",
                "keep two, or their sums: memfit explain PID needs none",
            )
