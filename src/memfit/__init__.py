"""memfit: will a reinforcement-learning run fit in memory, where does it go, what makes it fit."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Where each public name lives; it is loaded when it is first asked for, so that `import memfit`
# costs next to nothing.
_HOMES = {
    "plan": "memfit.api.plan",
    "profile": "memfit.api.profile",
    "optimize": "memfit.api.optimize",
    "sweep": "memfit.api.sweep",
    "explain": "memfit.api.explain",
    "run": "memfit.api.run",
    "listen": "memfit.inside.listener",
    "track": "memfit.tracking",
    "demo": "memfit.api.demo",
    "Plan": "memfit.model",
    "Ledger": "memfit.model",
    "Component": "memfit.model",
    "RunSpec": "memfit.model",
    "TorchRun": "memfit.libraries.torch_spec.torch_run",
    "MemfitError": "memfit.errors",
    "parse_bytes": "memfit.units",
    "format_bytes": "memfit.units",
}
__all__ = [
    "Component",
    "Ledger",
    "MemfitError",
    "Plan",
    "RunSpec",
    "TorchRun",
    "demo",
    "explain",
    "format_bytes",
    "listen",
    "optimize",
    "parse_bytes",
    "plan",
    "profile",
    "run",
    "sweep",
    "track",
]

if TYPE_CHECKING:
    from memfit.api.demo import demo
    from memfit.api.explain import explain
    from memfit.api.optimize import optimize
    from memfit.api.plan import plan
    from memfit.api.profile import profile
    from memfit.api.run import run
    from memfit.api.sweep import sweep
    from memfit.errors import MemfitError
    from memfit.inside.listener import listen
    from memfit.libraries.torch_spec.torch_run import TorchRun
    from memfit.model import Component, Ledger, Plan, RunSpec
    from memfit.tracking import track
    from memfit.units import format_bytes, parse_bytes


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"memfit has no attribute {name!r}: it has {', '.join(__all__)}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
