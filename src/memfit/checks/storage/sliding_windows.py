"""MF117: observations are sliding windows, and each one is stored whole.

What: an env moves a window on by joining its later part with what is new. An observation that
contains such a window repeats nearly all of the one before.

Why: a rollout of windows of 300 samples that move on by 10 stores each sample 30 times. The samples
stored once, with the place where each window begins, give the same minibatches to the bit:
`memfit.dropins.WindowRolloutBuffer` for stable-baselines3, or one time line that steps write into.

Bad:
    import numpy as np

    class Env:
        def step(self, action):
            self.window = np.concatenate([self.window[10:], self.fresh()])
            return self.window

Good:
    import numpy as np

    class Env:
        def step(self, action):
            self.line[self.at : self.at + 10] = self.fresh()
            self.at += 10
            return self.line[self.at - 300 : self.at]
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, dotted, in_package, methods

CODE = "MF117"
SEVERITY = Severity.INFO
FOUND = (
    (
        "import torch\nclass Env:\n    def step(self, a):\n"
        "        self.h = torch.cat([self.h[:, 5:], new], dim=1)\n"
    ),
)
CLEAN = (
    (
        "import numpy as np\nclass Env:\n    def step(self, a):\n"
        "        self.s = np.concatenate([self.s[1:], frame[None]])\n"
    ),
    (
        "import numpy as np\nclass Logger:\n    def update(self, x):\n"
        "        self.last = np.append(self.last[1:], x)\n"
    ),
)
_FRAMES = re.compile(r"frame|img|image|screen|pixel|stack", re.IGNORECASE)  # MF011's, few of them
_ENV = re.compile(r"env|world|robot|simul|task|wrapper", re.IGNORECASE)
_JOINS = ("cat", "concatenate", "append", "hstack", "vstack")


def find_in_source(source: Source) -> Iterator[Spot]:
    if "deploy" in source.path.lower():
        return  # nothing is trained, and so nothing stored
    seen = set()
    for node in source.nodes(ast.Assign):
        target, value = dotted(node.targets[0]), node.value
        if not target.startswith("self.") or not isinstance(value, ast.Call):
            continue
        inside = source.function(node)
        if inside is None or not _steps(inside.name):
            continue
        if in_package(source, value.func, ("torch", "numpy"), _JOINS) and value.args:
            first = value.args[0]
            parts = first.elts if isinstance(first, ast.List | ast.Tuple) else value.args[:1]
            owner = source.class_of(node)
            known = (owner, target)
            if _FRAMES.search(source.segment(node)) or not _is_env(owner):
                continue
            if parts and known not in seen and _later_part(parts[0], target):
                seen.add(known)
                yield Spot(
                    node,
                    f"{target} is a window that moves on: whoever stores it stores nearly all of "
                    "it again at each step",
                    "store each sample once, as memfit.dropins.WindowRolloutBuffer does",
                )


def _is_env(owner: ast.ClassDef | None) -> bool:
    """Whether what a class shows is what is learned from, and not what is logged."""
    return owner is not None and (
        bool(_ENV.search(owner.name)) or {"step", "reset"} <= methods(owner).keys()
    )


def _steps(name: str) -> bool:
    return any(word in name for word in ("step", "observ", "obs", "update", "advance"))


def _later_part(node: ast.expr, target: str) -> bool:
    if not isinstance(node, ast.Subscript) or dotted(node.value) != target:
        return False
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return any(isinstance(p, ast.Slice) and p.lower is not None and p.upper is None for p in parts)
