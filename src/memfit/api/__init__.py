"""The verbs of memfit. The only place, beside the child, that wires the rooms together."""

from memfit.api.demonstration import demo, demo_system
from memfit.api.explaining import explain
from memfit.api.planning import plan
from memfit.api.running import run
from memfit.api.sweeping import sweep

__all__ = ["demo", "demo_system", "explain", "plan", "run", "sweep"]
