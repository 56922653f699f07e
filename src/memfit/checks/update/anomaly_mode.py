"""MF207: torch's search for anomalies is left on.

What: `torch.autograd.set_detect_anomaly(True)` for the whole script.

Why: each operation of each forward pass then keeps the text of the stack that called it until the
graph ends, and every gradient is looked through: memory and time for a debugger's sake.

Bad:
    import torch

    torch.autograd.set_detect_anomaly(True)

Good:
    import torch

    torch.autograd.set_detect_anomaly(debug)
"""

from __future__ import annotations

from collections.abc import Iterator

from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, argument, calls, constant

CODE = "MF207"
SEVERITY = Severity.WARNING
CLEAN = (
    "import torch\ntorch.autograd.set_detect_anomaly(False)\n",
    "import torch\ndef debug():\n    torch.autograd.set_detect_anomaly(True)\n",
)


def find_in_source(source: Source) -> Iterator[Spot]:
    for call in calls(source, ("torch",), ("set_detect_anomaly",)):
        inside = source.function(call)
        asked = inside is not None and "debug" in inside.name  # only on when it is called
        if not asked and constant(source, argument(call, "mode", 0)) is True:
            yield Spot(call, "the search for anomalies is on", "leave it out once it is found")
