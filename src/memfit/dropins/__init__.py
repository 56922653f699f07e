"""Memory-saving parts for existing training code, each one argument away."""

from __future__ import annotations

import importlib
from typing import Any

# Where each public name lives; nothing is imported before it is asked for.
_WHERE = {
    "LightVecEnv": "vecenv",
    "LightVectorEnv": "vecenv_gymnasium",
    "shared": "shared_data",
    "Window": "layout",
    "stack": "layout",
    "WindowArray": "windowed",
    "WindowRolloutBuffer": "rollout",
    "WindowMaskableRolloutBuffer": "rollout_contrib",
    "WindowRecurrentRolloutBuffer": "rollout_contrib",
    "WindowReplayBuffer": "replay",
    "WindowHerReplayBuffer": "replay",
    "MicroBatchPPO": "microbatch",
    "micro_batch_for": "microbatch_size",
    "fit_micro_batch": "microbatch_probe",
    "accumulate": "accumulate_gradients",
    "micro_batches": "accumulate_gradients",
    "StackFrames": "frames",
    "NarrowObservation": "narrow",
    "narrowest": "narrow",
    "Settings": "settings",
    "apply_settings": "settings",
    "settings_for": "settings",
    "trim": "settings",
}

__all__ = sorted(_WHERE)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"memfit.dropins has no {name!r}")
    return getattr(importlib.import_module(f"memfit.dropins.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return __all__
