"""MF503: an env builds a graph that nothing reads.

What: an attribute of an env is given a graph, or what builds one, and nothing reads it.

Why: graphs of levels are the largest thing that many envs have: 56 of the 67 MiB of an env of a
platformer were edges and features that no network looked at. What no observation shows need not be
built.

Bad:
    import gymnasium as gym

    class Level(gym.Env):
        def reset(self, seed=None, options=None):
            self.graph = build_graph(self.tiles)
            return self.frame(), {}

Good:
    import gymnasium as gym

    class Level(gym.Env):
        def reset(self, seed=None, options=None):
            return self.frame(), {}
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, classes_with_base, last_name, self_attributes

CODE = "MF503"
SEVERITY = Severity.WARNING
CLEAN = (
    (
        "import gymnasium as gym\nclass L(gym.Env):\n    def reset(self):\n"
        "        self.graph = build_graph(self.t)\n    def o(self):\n        return self.graph.x\n"
    ),
)
_GRAPH = re.compile(r"graph|reachab|navmesh", re.IGNORECASE)


def find_in_source(source: Source) -> Iterator[Spot]:
    for owner in classes_with_base(source, "Env", "Wrapper"):
        for name, attribute in self_attributes(source, owner).items():
            built = [value for _, value in attribute.stores if isinstance(value, ast.Call)]
            graphs = [v for v in built if _GRAPH.search(last_name(v.func))]
            read = any(
                n.attr == name and isinstance(n.ctx, ast.Load) for n in source.nodes(ast.Attribute)
            )
            if graphs and not attribute.reads and not attribute.writes and not read:
                yield Spot(
                    graphs[0],
                    f"self.{name} is built, and nothing in this file reads it",
                    "build it only where an observation shows it",
                )
