"""MF511: a cache keeps envs and networks alive.

What: `functools.cache` or `lru_cache` on a method of an env, a wrapper or a network.

Why: the cache belongs to the class and holds `self` with every call that it remembers: no env of
that class, with all its arrays, is let go before the program ends, and with arrays among the
arguments it fails.

Bad:
    import functools
    import gymnasium as gym

    class Level(gym.Env):
        @functools.lru_cache(maxsize=None)
        def path_to(self, x, y):
            return self.search(x, y)

Good:
    import functools
    import gymnasium as gym

    class Level(gym.Env):
        def __init__(self):
            self.path_to = functools.lru_cache(maxsize=1000)(self.search)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, classes_with_base, in_package, last_name, methods

CODE = "MF511"
SEVERITY = Severity.WARNING
_SPACES = ("observation_space", "action_space")  # PettingZoo wants the same object each time
CLEAN = (
    (
        "import functools\nimport gymnasium as gym\nclass L(gym.Env):\n    @staticmethod\n"
        "    @functools.cache\n    def levels():\n        return 3\n"
    ),
)


def find_in_source(source: Source) -> Iterator[Spot]:
    for owner in classes_with_base(source, "Env", "Wrapper", "Module"):
        for name, method in methods(owner).items():
            if name in _SPACES:
                continue
            free = {last_name(d) for d in method.decorator_list} & {"staticmethod", "classmethod"}
            for given in method.decorator_list if not free else []:
                called = given.func if isinstance(given, ast.Call) else given
                if in_package(source, called, ("functools",), ("cache", "lru_cache")):
                    yield Spot(
                        given,
                        f"the cache of {name} keeps every {owner.name} alive",
                        "a cache of the object's own, made in __init__",
                    )
