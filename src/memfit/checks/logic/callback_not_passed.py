"""MF303: a callback is made and never passed on.

What: a callback of stable-baselines3 is given to a variable that nothing reads.

Why: nothing is evaluated or saved, and nobody is told. Its env is held all the same.

Bad:
    from stable_baselines3.common.callbacks import CheckpointCallback, EvalCallback

    checkpoint = CheckpointCallback(10_000, "models")
    evaluation = EvalCallback(eval_env)
    model.learn(1_000_000, callback=[checkpoint])

Good:
    from stable_baselines3.common.callbacks import CheckpointCallback, EvalCallback

    checkpoint = CheckpointCallback(10_000, "models")
    evaluation = EvalCallback(eval_env)
    model.learn(1_000_000, callback=[checkpoint, evaluation])
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memfit.checks._sb3 import PACKAGES, learns
from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, calls, dotted, family, last_name

CODE = "MF303"
SEVERITY = Severity.WARNING
CLEAN = (
    (
        "from stable_baselines3.common.callbacks import EvalCallback\n"
        "class Trainer:\n    def build(self):\n        self.evaluation = EvalCallback(env)\n"
        "    def train(self):\n        self.model.learn(9, callback=self.evaluation)\n"
    ),
    "from stable_baselines3.common.callbacks import EvalCallback\nevaluation = EvalCallback(env)\n",
)
FOUND = (
    (
        "from stable_baselines3.common.callbacks import EvalCallback\n"
        "class Trainer:\n    def build(self):\n        self.evaluation = EvalCallback(env)\n"
        "    def train(self):\n        self.model.learn(9)\n"
    ),
)
_NAMES = {
    *("EvalCallback", "CheckpointCallback", "StopTrainingOnMaxEpisodes", "EveryNTimesteps"),
    *("ProgressBarCallback", "CallbackList", "MaskableEvalCallback", "LogEveryNTimesteps"),
}


def find_in_source(source: Source) -> Iterator[Spot]:
    for call in calls(source, PACKAGES, _NAMES):
        above = source.parent(call)
        if not isinstance(above, ast.Assign) or len(above.targets) != 1:
            continue
        target = above.targets[0]
        if isinstance(target, ast.Name):
            unread = learns(source) and not source.loads_of(source.scope(call), target.id)
        else:
            unread = dotted(target).startswith("self.") and _never_passed(source, call, target)
        if unread:
            yield Spot(
                call,
                f"{source.segment(target)} is made and never passed on",
                f"callback=[..., {source.segment(target)}] in learn()",
            )


def _never_passed(source: Source, call: ast.Call, target: ast.expr) -> bool:
    """Whether neither its class, nor those that it is made of, hands it on to a learn()."""
    owner, name = source.class_of(call), last_name(target)
    known = family(source, owner) if owner is not None else None
    if known is None or not any(learns(file) for file, _ in known):
        return False
    for file in {source, *(file for file, _ in known)}:
        for node in file.nodes(ast.Attribute):
            above = file.parent(node)
            looked_at = isinstance(above, (ast.Attribute, ast.Compare))
            if node.attr == name and isinstance(node.ctx, ast.Load) and not looked_at:
                return False
    return True
