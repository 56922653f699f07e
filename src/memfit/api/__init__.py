"""The verbs of memfit. The only place, beside the child, that wires the rooms together."""

from memfit.api.comparing import compare, outlook, recorded
from memfit.api.demonstration import demo, demo_system
from memfit.api.explaining import explain
from memfit.api.planning import plan
from memfit.api.running import default_recording, run
from memfit.api.sweeping import sweep
from memfit.api.watching import watch

__all__ = [
    "compare",
    "default_recording",
    "demo",
    "demo_system",
    "explain",
    "outlook",
    "plan",
    "recorded",
    "run",
    "sweep",
    "watch",
]
