"""Says in JSON what the variables of a process hold, for whoever cannot wait: see holder_looks."""

from __future__ import annotations

import collections
import json
import os
import sys
import time

from memfit.measure.live.outside_walk.answer import walk_outside
from memfit.measure.live.outside_walk.interpreter import NotWalkable

_MOST_COPIED = 2**27
_MOST_HOLDERS = 100


def main(pid: int, seconds: float, nice: int) -> None:
    os.nice(nice)
    held: collections.Counter[str] = collections.Counter()
    elements: dict[str, int] = {}
    try:
        answer = walk_outside(
            pid,
            seconds=seconds,
            roles={},
            most_copied=_MOST_COPIED,
            variables_only=True,
            patient=nice > 0,  # else the run is held still meanwhile
        )
    except NotWalkable:
        answer = {"arrays": [], "python": []}
    for row in answer["arrays"]:
        held[row["holder"]] += row["nbytes"]
    for row in answer["python"]:
        held[row["holder"]] += row["nbytes"]
        if row.get("elements"):
            elements[row["holder"]] = row["elements"]
    found = {
        "seconds": time.process_time(),
        "held": dict(held.most_common(_MOST_HOLDERS)),
        "elements": elements,
    }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
