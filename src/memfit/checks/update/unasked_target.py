"""MF209: a copy of a network follows it, and nothing asks it.

What: a network is copied, and the copy is only ever given the other one's parameters.

Why: target networks belong to algorithms that learn from them. One that nothing calls costs its
parameters, and a pass over all of them at every update: PPO has none.

Bad:
    import copy

    class Learner:
        def __init__(self):
            self.target = copy.deepcopy(self.actor)

        def follow(self):
            for mine, theirs in zip(self.target.parameters(), self.actor.parameters()):
                mine.data.lerp_(theirs.data, 0.005)

Good:
    class Learner:
        def __init__(self):
            self.actor = Actor()
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, calls, dotted, last_name, read_beside

CODE = "MF209"
SEVERITY = Severity.INFO
CLEAN = (
    (
        "import copy\nclass L:\n    def __init__(self):\n"
        "        self.target = copy.deepcopy(self.q)\n    def update(self, s):\n"
        "        y = self.target(s)\n        soft_update(self.q, self.target)\n"
    ),
    (
        "import copy\nclass L:\n    def __init__(self):\n"
        "        self.target = copy.deepcopy(self.q)\n    def update(self, s):\n"
        "        for t, n in ((self.target, self.q),):\n            f(t)\n"
    ),
    (
        "import copy\nclass L(Base):\n    def __init__(self):\n"
        "        self.target = copy.deepcopy(self.q)\n    def f(self):\n"
        "        soft_update(self.q, self.target)\n"
    ),
)
_PARAMETERS = {"parameters", "state_dict", "load_state_dict", "named_parameters", "to", "eval"}
_FOLLOWS = ("soft", "polyak", "copy", "sync", "hard")


def find_in_source(source: Source) -> Iterator[Spot]:
    for call in calls(source, ("copy",), ("deepcopy",)):
        above = source.parent(call)
        target = above.targets[0] if isinstance(above, ast.Assign) else None
        if not isinstance(target, ast.Attribute) or not call.args:
            continue
        owner = source.class_of(call)
        if owner is not None and any(map(_unseen, owner.bases)):
            continue  # what it inherits may ask it
        if "target" not in target.attr or not dotted(target).startswith("self."):
            continue
        reads = [
            n
            for n in source.nodes(ast.Attribute)
            if n.attr == target.attr and isinstance(n.ctx, ast.Load)
        ]
        if (
            reads
            and all(_only_follows(source, n) for n in reads)
            and not read_beside(source, target.attr)
        ):
            yield Spot(
                call,
                f"{dotted(target)} follows {source.segment(call.args[0])}, and nothing asks it",
                f"leave out {dotted(target)}",
            )


def _unseen(base: ast.expr) -> bool:
    """Whether methods come from a class that is neither torch's own nor a plain object."""
    return last_name(base) not in ("Module", "object", "ABC", "Protocol")


def _only_follows(source: Source, read: ast.Attribute) -> bool:
    """Whether it is read for its parameters alone, or given to what copies them."""
    above = source.parent(read)
    if isinstance(above, ast.Attribute):
        return above.attr in _PARAMETERS
    if isinstance(above, ast.Call) and above.func is not read:
        return any(word in last_name(above.func).lower() for word in _FOLLOWS)
    loop = next((a for a in source.ancestors(read) if isinstance(a, ast.For)), None)
    if loop is None or not isinstance(above, ast.Tuple) or not isinstance(loop.target, ast.Tuple):
        return False
    place = above.elts.index(read)
    if place >= len(loop.target.elts):
        return False
    name = last_name(loop.target.elts[place])
    uses = [
        n
        for n in ast.walk(loop)
        if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)
    ]
    return bool(uses) and all(getattr(source.parent(n), "attr", "") in _PARAMETERS for n in uses)
