"""Ray: demands by plan, trials that are measured, runs on the nodes of a cluster, and its memory.

Ray's scheduler places what demands `memory=`; memfit says how much that is, and measures beside it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from memfit.integrations.ray.demand import Demand, paste, resources

if TYPE_CHECKING:
    from memfit.integrations.ray.planned_trials import DoesNotFit, planned
    from memfit.integrations.ray.trial_memory import MemoryCallback

__all__ = ["Demand", "DoesNotFit", "MemoryCallback", "paste", "planned", "resources"]

# These need Ray, and are loaded when they are first asked for.
_HOMES = {
    "planned": "memfit.integrations.ray.planned_trials",
    "DoesNotFit": "memfit.integrations.ray.planned_trials",
    "MemoryCallback": "memfit.integrations.ray.trial_memory",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"memfit.integrations.ray has no {name!r}: it has {__all__}")
    return getattr(importlib.import_module(_HOMES[name]), name)
