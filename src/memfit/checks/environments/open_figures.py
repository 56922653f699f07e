"""MF512: figures are made and never closed.

What: a loop makes a figure of matplotlib each time round, and nothing in the file closes one.

Why: pyplot keeps every figure until it is closed, with its canvas of a few MiB. A training that
plots at each evaluation grows with every one of them.

Bad:
    import matplotlib.pyplot as plt

    for episode in range(1000):
        fig = plt.figure()
        plt.plot(rewards)
        plt.savefig("rewards.png")

Good:
    import matplotlib.pyplot as plt

    for episode in range(1000):
        fig = plt.figure()
        plt.plot(rewards)
        plt.savefig("rewards.png")
        plt.close(fig)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, argument, calls, keyword, last_name, loops_around, number, origin

CODE = "MF512"
SEVERITY = Severity.WARNING
CLEAN = (
    "import matplotlib.pyplot as plt\nfor i in range(9):\n    plt.figure(1)\n    plt.clf()\n",
    "import matplotlib.pyplot as plt\nplt.figure()\nfor x in xs:\n    plt.plot(x)\n",
    "import matplotlib.pyplot as plt\nfor i, x in enumerate(['a', 'b']):\n    plt.figure()\n",
)
_PACKAGE = ("matplotlib",)
_FEW = 20  # pyplot itself warns above so many


def find_in_source(source: Source) -> Iterator[Spot]:
    if any(calls(source, _PACKAGE, ("close", "clf", "show"))):
        return
    for call in calls(source, _PACKAGE, ("figure", "subplots")):
        named = bool(call.args) or keyword(call, "num") is not None
        numbered = named and source.qualified(call.func).endswith("figure")
        loops = list(loops_around(source, call))
        if not numbered and not all(_short(source, loop) for loop in loops):
            yield Spot(
                call, "a figure is made each time round, and none is closed", "plt.close(fig)"
            )


def _short(source: Source, loop: ast.AST) -> bool:
    """Whether it goes over a few things that are written out: a figure each is meant."""
    over = loop.iter if isinstance(loop, ast.For) else None
    if isinstance(over, ast.Call) and last_name(over.func) == "range":
        return (number(source, argument(over, "stop", len(over.args[:2]) - 1)) or _FEW + 1) <= _FEW
    if isinstance(over, ast.Call) and last_name(over.func) in ("enumerate", "zip", "sorted"):
        over = over.args[0] if over.args else None
    return isinstance(origin(source, over), ast.List | ast.Tuple | ast.Dict)
