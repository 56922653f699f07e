"""MF510: an env keeps something of every step for ever.

What: `step` adds to a list of the env that nothing empties, neither `reset` nor anything else.

Why: a training takes millions of steps. What looks like a few bytes is gigabytes at its end, in
every env, and only the env's own code can let it go (SB3#1699: 130 GB after 100,000 steps).

Bad:
    import gymnasium as gym

    class Market(gym.Env):
        def __init__(self):
            self.history = []

        def step(self, action):
            self.history.append(self.portfolio.copy())

Good:
    import gymnasium as gym

    class Market(gym.Env):
        def reset(self, seed=None, options=None):
            self.history = []

        def step(self, action):
            self.history.append(self.portfolio.copy())
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import (
    Method,
    Source,
    classes_with_base,
    dotted,
    is_emptied,
    last_name,
    methods,
    self_attributes,
)

CODE = "MF510"
SEVERITY = Severity.WARNING
CLEAN = (
    (
        "import gymnasium as gym\nfrom collections import deque\nclass M(gym.Env):\n"
        "    def __init__(self):\n        self.h = deque(maxlen=9)\n"
        "    def step(self, a):\n        self.h.append(a)\n"
    ),
    (
        "import gymnasium as gym\nclass M(gym.Env):\n    def __init__(self):\n"
        "        self.h = []\n        self.begin()\n    def begin(self):\n        self.h = []\n"
        "    def step(self, a):\n        self.h.append(a)\n"
    ),
)


def find_in_source(source: Source) -> Iterator[Spot]:
    for owner in classes_with_base(source, "Env", "Wrapper"):
        step = methods(owner).get("step")
        if step is None:
            continue
        uses = self_attributes(source, owner)
        for call in _appends(step):
            name = dotted(call.func).split(".")[1]
            kept = name in uses and _only_list(uses[name].stores)
            if kept and not is_emptied(owner, f"self.{name}") and not _guarded(source, call):
                yield Spot(
                    call,
                    f"self.{name} grows at every step, and nothing empties it",
                    f"self.{name} = [] in reset, or collections.deque(maxlen=...)",
                )


def _appends(step: ast.AST) -> Iterator[ast.Call]:
    for n in ast.walk(step):
        if isinstance(n, ast.Call) and last_name(n.func) in ("append", "extend"):
            parts = dotted(n.func).split(".")
            if len(parts) == 3 and parts[0] == "self":
                yield n


def _only_list(stores: list[tuple[Method, ast.expr | None]]) -> bool:
    """Whether it is made once, and then is only ever added to."""
    method, value = stores[0] if len(stores) == 1 else (None, None)
    return method is not None and method.name == "__init__" and isinstance(value, ast.List)


def _guarded(source: Source, call: ast.Call) -> bool:
    """Whether it is only done now and then."""
    return any(isinstance(a, ast.If) for a in source.ancestors(call))
