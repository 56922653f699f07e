"""MF402: a dataset is copied into every worker.

What: data that was loaded in the main process is part of what makes the envs of worker processes.

Why: what makes an env is pickled for each worker and unpickled there: with 16 workers the dataset
is there 17 times (stable-baselines#455, ray#3777). A file that each worker maps, or
`memfit.dropins.shared`, is there once.

Bad:
    import numpy as np
    from stable_baselines3.common.vec_env import SubprocVecEnv

    prices = np.load("prices.npy")
    env = SubprocVecEnv([lambda: Market(prices) for _ in range(16)])

Good:
    import numpy as np
    from stable_baselines3.common.vec_env import SubprocVecEnv

    env = SubprocVecEnv([lambda: Market(np.load("prices.npy", mmap_mode="r"))] * 16)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import BindingKind, Source, argument, keyword, last_name

CODE = "MF402"
SEVERITY = Severity.WARNING
FOUND = (
    (
        "import pandas as pd\nfrom stable_baselines3.common.env_util import make_vec_env\n"
        "from stable_baselines3.common.vec_env import SubprocVecEnv\ndf = pd.read_csv('a.csv')\n"
        "env = make_vec_env(Market, 8, env_kwargs={'df': df}, vec_env_cls=SubprocVecEnv)\n"
    ),
)
CLEAN = (
    (
        "import pandas as pd\nfrom stable_baselines3.common.vec_env import DummyVecEnv\n"
        "df = pd.read_csv('a.csv')\nenv = DummyVecEnv([lambda: Market(df)])\n"
    ),
)
_LOADS = {
    **dict.fromkeys(("load", "loadtxt", "genfromtxt", "fromfile"), ("numpy", "torch", "joblib")),
    **dict.fromkeys(("read_csv", "read_parquet", "read_pickle", "read_hdf"), ("pandas", "polars")),
    "load_dataset": ("datasets",),
}
_WORKERS = {"SubprocVecEnv", "AsyncVectorEnv"}


def find_in_source(source: Source) -> Iterator[Spot]:
    for call in source.nodes(ast.Call):
        name = last_name(call.func)
        if name in _WORKERS:
            makers = argument(call, "env_fns", 0)
        elif last_name(keyword(call, "vec_env_cls")) in _WORKERS:
            makers = keyword(call, "env_kwargs")
        else:
            continue
        for part in ast.walk(makers) if makers is not None else []:
            if isinstance(part, ast.Name) and (loader := _loaded(source, part)):
                yield Spot(
                    part,
                    f"{part.id}, from {loader}(), is copied into every worker",
                    "load it in the env with mmap_mode, or share it: memfit.dropins.shared",
                )


def _loaded(source: Source, name: ast.Name) -> str:
    """The function that loaded what a name stands for; empty if none of those known did."""
    for binding in source.bindings(name):
        value = binding.value
        if binding.kind is not BindingKind.VALUE or not isinstance(value, ast.Call):
            continue
        parts = source.qualified(value.func).split(".")
        mapped = keyword(value, "mmap_mode") is not None
        if parts[0] in _LOADS.get(parts[-1], ()) and not mapped:
            return ".".join(parts)
    return ""
