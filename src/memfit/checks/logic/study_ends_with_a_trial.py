"""MF311: one trial that runs out of memory ends the whole study.

What: `study.optimize` without `catch`, of an objective that catches nothing.

Why: settings that are sampled decide what a trial needs. The first that raises MemoryError, or
torch's out-of-memory error, ends all trials after it, hours before the study's end.

Bad:
    import optuna

    def objective(trial):
        return train(width=trial.suggest_int("width", 64, 4096))

    optuna.create_study().optimize(objective, n_trials=100)

Good:
    import optuna

    def objective(trial):
        return train(width=trial.suggest_int("width", 64, 4096))

    optuna.create_study().optimize(objective, n_trials=100, catch=(MemoryError, RuntimeError))
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Arguments, Source, argument, keyword, last_name

CODE = "MF311"
SEVERITY = Severity.INFO
_CAUGHT = {"MemoryError", "Exception", "BaseException", "RuntimeError", "OutOfMemoryError"}
CLEAN = (
    (
        "import optuna\ndef objective(trial):\n    try:\n        return train(trial)\n"
        "    except MemoryError:\n        return 0.0\n"
        "optuna.create_study().optimize(objective, n_trials=9)\n"
    ),
    "import scipy\nscipy.optimize(objective, n_trials=2)\n",
)


def find_in_source(source: Source) -> Iterator[Spot]:
    if "optuna" not in source.packages:
        return
    for call in source.nodes(ast.Call):
        if last_name(call.func) != "optimize" or not Arguments(call).lacks("catch", 4):
            continue
        if keyword(call, "n_trials") is None and keyword(call, "timeout") is None:
            continue
        objective = source.definition(argument(call, "func", 0))
        if isinstance(objective, ast.FunctionDef) and not _catches(objective):
            yield Spot(
                call,
                f"a trial of {objective.name} that runs out of memory ends the study",
                "catch=(MemoryError, RuntimeError)",
            )


def _catches(function: ast.FunctionDef) -> bool:
    for node in ast.walk(function):
        if isinstance(node, ast.ExceptHandler):
            kinds = [] if node.type is None else [last_name(n) for n in ast.walk(node.type)]
            if node.type is None or set(kinds) & _CAUGHT:
                return True
    return False
