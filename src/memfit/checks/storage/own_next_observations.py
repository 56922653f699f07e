"""MF103: a replay of its own stores each observation twice.

What: a buffer has an array for observations and one of the same shape for the next observations.
All but the last one of an episode are the same, moved by one step.

Why: it doubles the replay. One array and the number of the step that follows give the same samples,
if the last observation of each episode is stored too.

Bad:
    import numpy as np

    class ReplayBuffer:
        def __init__(self, size, dim):
            self.obs = np.zeros((size, dim), dtype=np.float32)
            self.next_obs = np.zeros((size, dim), dtype=np.float32)

Good:
    import numpy as np

    class ReplayBuffer:
        def __init__(self, size, dim):
            self.obs = np.zeros((size + 1, dim), dtype=np.float32)
            self.ends = np.zeros(size, dtype=bool)
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from memfit.checks._arrays import OBSERVATION, Made, made_arrays
from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, enclosing, last_name, number

CODE = "MF103"
SEVERITY = Severity.INFO
CLEAN = (
    (
        "import torch\nclass Replay:\n    def __init__(self, size):\n"
        "        self.obs = torch.zeros((size, 4))\n"
        "        self.next_obs = torch.zeros((size, 4))  # after n-step returns\n"
    ),
    (
        "import numpy as np\nclass Net:\n    def __init__(self):\n"
        "        state = np.zeros(shape=(1,) + shape)\n"
        "        next_state = np.zeros(shape=(1,) + shape)\n"
    ),
)
_STEPS = re.compile(r"(\bn|_n|multi)[-_ ]?steps?\b|nstep", re.IGNORECASE)
_NEXT = ("next_", "new_", "_next", "_new", "2", "_")


def find_in_source(source: Source) -> Iterator[Spot]:
    for owner in source.nodes(ast.ClassDef):
        if _several_steps(source, owner):
            continue
        made = {m.target: m for m in made_arrays(source, owner) if _kept(source, m)}
        for name, second in made.items():
            first = _first(name, made)
            if first is None or _shape(first) != _shape(second):
                continue
            if len(second.dims) > 1 and not _is_small(source, second.dims[0]):
                yield Spot(
                    second.call,
                    f"{name} repeats {first.target}, moved by one step",
                    f"store {first.target} once and take the row that follows; "
                    "memfit.dropins.WindowReplayBuffer does that for stable-baselines3",
                )


def _several_steps(source: Source, owner: ast.ClassDef) -> bool:
    """Whether the next observations are those of several steps later, also by its comments."""
    lines = source.text.splitlines()[owner.lineno - 1 : owner.end_lineno]
    return any(_STEPS.search(line) for line in lines)


def _first(name: str, made: dict[str, Made]) -> Made | None:
    for mark in _NEXT[:2]:
        if mark in name and OBSERVATION.search(name):
            return made.get(name.replace(mark, "", 1))
    for mark in _NEXT[2:]:
        if name.endswith(mark) and OBSERVATION.search(name.removesuffix(mark)):
            return made.get(name.removesuffix(mark))
    return None


def _is_small(source: Source, rows: ast.expr) -> bool:
    """Whether it is one row, or a row for each env or of a minibatch, and no buffer."""
    word = last_name(rows).lower()
    return number(source, rows) == 1 or "batch" in word or "envs" in word


def _kept(source: Source, made: Made) -> bool:
    """Whether it is given to `self.name`, and not to a variable of a method."""
    stored = enclosing(source, made.call)
    target = stored.targets[0] if isinstance(stored, ast.Assign) else None
    return (
        isinstance(target, ast.Attribute)
        and bool(made.target)
        and not any(
            isinstance(a, ast.If) and "optimize" in source.segment(a.test).lower()
            for a in source.ancestors(made.call)  # its user can have it stored once
        )
    )


def _shape(made: Made) -> list[str]:
    return [ast.dump(dim) for dim in made.dims]
