"""MF410: each of several workers may use many threads.

What: a file makes worker processes, and sets the threads of torch to all cores or to a number above
the cores of this machine.

Why: each worker then has as many threads as that, and each thread a stack and perhaps a heap of its
own. Little of it is ever resident, but the threads wait for each other: workers times threads
should be no more than the cores.

Bad:
    import os
    import torch
    from stable_baselines3.common.vec_env import SubprocVecEnv

    torch.set_num_threads(os.cpu_count())
    env = SubprocVecEnv([make_env] * 8)

Good:
    import torch
    from stable_baselines3.common.vec_env import SubprocVecEnv

    torch.set_num_threads(1)
    env = SubprocVecEnv([make_env] * 8)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memfit.checks._machine import cores
from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, calls, last_name, number, origin

CODE = "MF410"
SEVERITY = Severity.INFO
OFF = "it was not yet tried on public scripts"
FOUND = (
    (
        "import torch\nimport multiprocessing as mp\ntorch.set_num_threads(100_000)\n"
        "pool = mp.Pool(4)\n"
    ),
)
CLEAN = (
    "import os\nimport torch\ntorch.set_num_threads(os.cpu_count())\n",
    "import torch\nimport multiprocessing as mp\ntorch.set_num_threads(n)\npool = mp.Pool(4)\n",
)
_WORKERS = {"SubprocVecEnv", "AsyncVectorEnv", "Pool", "ProcessPoolExecutor"}
_PLACES = ("stable_baselines3", "gymnasium", "gym", "multiprocessing", "concurrent", "torch")


def find_in_source(source: Source) -> Iterator[Spot]:
    if not any(calls(source, _PLACES, tuple(_WORKERS))):
        return
    for call in calls(source, ("torch",), ("set_num_threads",)):
        asked = call.args[0] if call.args else None
        given = origin(source, asked)
        every = isinstance(given, ast.Call) and last_name(given.func) == "cpu_count"
        if every or (number(source, asked) or 0) > cores():
            yield Spot(
                call,
                f"each worker may use {source.segment(given) if given else 'all'} threads",
                "torch.set_num_threads(1) where there are workers",
            )
