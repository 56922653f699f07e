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

from collections.abc import Iterator

from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, calls, in_step_loop, keyword, loops_around

CODE = "MF512"
SEVERITY = Severity.WARNING
CLEAN = (
    "import matplotlib.pyplot as plt\nfor i in range(9):\n    plt.figure(1)\n    plt.clf()\n",
    "import matplotlib.pyplot as plt\nplt.figure()\nfor x in xs:\n    plt.plot(x)\n",
)
_PACKAGE = ("matplotlib",)


def find_in_source(source: Source) -> Iterator[Spot]:
    if any(calls(source, _PACKAGE, ("close", "clf", "show"))):
        return
    for call in calls(source, _PACKAGE, ("figure", "subplots")):
        named = bool(call.args) or keyword(call, "num") is not None
        numbered = named and source.qualified(call.func).endswith("figure")
        if not numbered and (any(loops_around(source, call)) or in_step_loop(source, call)):
            yield Spot(
                call, "a figure is made each time round, and none is closed", "plt.close(fig)"
            )
