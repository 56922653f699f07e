"""MF105: a history is kept that only a plot reads.

What: a class keeps an array to which each step adds, and reads it only in methods that draw or
show.

Why: it is there for every env or agent during the whole training, for a picture of a few of them at
its end. A flag that allocates it for those that are drawn leaves the picture as it is.

Bad:
    import numpy as np

    class Env:
        def __init__(self, n):
            self.pos_history = np.zeros((n, 100, 3))

        def step(self, action):
            self.pos_history[:, self.count] = self.position

        def plot(self):
            return self.pos_history[:4]

Good:
    import numpy as np

    class Env:
        def __init__(self, n, drawn=0):
            self.pos_history = np.zeros((drawn, 100, 3)) if drawn else None

        def step(self, action):
            if self.pos_history is not None:
                self.pos_history[:, self.count] = self.position[: len(self.pos_history)]
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from memfit.checks._arrays import Made, made_arrays
from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, methods, self_attributes

CODE = "MF105"
SEVERITY = Severity.INFO
_DRAWS = re.compile(r"plot|render|draw|paths?$|trajector|visual|figure|animate|show", re.IGNORECASE)
_STEPS = {"step", "_step", "reset", "step_all"}
_HISTORY = re.compile(r"hist|path|trail|traj|record|log|past", re.IGNORECASE)


def find_in_source(source: Source) -> Iterator[Spot]:
    for owner in source.nodes(ast.ClassDef):
        if not methods(owner).keys() & _STEPS:
            continue  # a class that is there for its plots
        made = {m.target: m for m in made_arrays(source, owner) if len(m.dims) > 1}
        for name, attribute in self_attributes(source, owner).items():
            if name not in made or not _HISTORY.search(name) or not attribute.writes:
                continue
            readers = {method.name for method, _ in attribute.reads} | _others(source, owner, name)
            if readers and all(map(_DRAWS.search, readers)) and _whole(made[name]):
                yield Spot(
                    made[name].call,
                    f"self.{name} is kept for all, and only {', '.join(sorted(readers))} reads it",
                    f"keep self.{name} for those that are drawn, and only when they are",
                )


def _others(source: Source, owner: ast.ClassDef, name: str) -> set[str]:
    """The functions outside the class that read an attribute of that name of something."""
    found = set()
    for node in source.nodes(ast.Attribute):
        read = node.attr == name and isinstance(node.ctx, ast.Load)
        if read and source.class_of(node) is not owner:
            inside = source.function(node)
            found.add(inside.name if inside is not None else "the script")
    return found


def _whole(made: Made) -> bool:
    """Whether its length is not that of what is drawn already."""
    return not made.mentions(_DRAWS) and not made.mentions(re.compile("drawn|shown"))
