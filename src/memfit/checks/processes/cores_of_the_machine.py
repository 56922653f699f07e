"""MF406: as many workers are started as the machine has cores.

What: the number of envs or workers is `os.cpu_count()`, or `multiprocessing.cpu_count()`.

Why: it counts all cores of the machine, also where a container, a job or `taskset` gives a few of
them. On a node with 128 cores a job with 4 starts 128 workers, each with all that it imports.

Bad:
    import os

    from stable_baselines3.common.env_util import make_vec_env

    env = make_vec_env("CartPole-v1", n_envs=os.cpu_count())

Good:
    import os

    from stable_baselines3.common.env_util import make_vec_env

    env = make_vec_env("CartPole-v1", n_envs=len(os.sched_getaffinity(0)))
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, calls, last_name

CODE = "MF406"
SEVERITY = Severity.INFO
FOUND = ("import multiprocessing as mp\npool = mp.Pool(mp.cpu_count())\n",)
CLEAN = ("import os\nprint(os.cpu_count())\n",)
_WORKERS = re.compile(r"^(n|num|nr)?_?(envs?|workers?|procs?|processes|cpus?)$", re.IGNORECASE)
_STARTS = {"Pool", "ProcessPoolExecutor", "SubprocVecEnv", "AsyncVectorEnv", "make_vec_env"}


def find_in_source(source: Source) -> Iterator[Spot]:
    for call in calls(source, ("os", "multiprocessing"), ("cpu_count",)):
        if _starts(source, call):
            yield Spot(
                call,
                "cpu_count() counts all cores of the machine, also those that are not given",
                "len(os.sched_getaffinity(0))",
            )


def _starts(source: Source, node: ast.AST) -> bool:
    below = node
    for above in source.ancestors(node):
        if isinstance(above, ast.Assign):
            return bool(_WORKERS.match(last_name(above.targets[0])))
        if isinstance(above, ast.keyword):
            return bool(_WORKERS.match(above.arg or "")) or above.arg == "max_workers"
        if isinstance(above, ast.Call) and below in above.args:
            if last_name(above.func) in _STARTS:
                return True
            if last_name(above.func) not in ("int", "min", "max"):
                return False
        if isinstance(above, ast.stmt):
            return False
        below = above
    return False
