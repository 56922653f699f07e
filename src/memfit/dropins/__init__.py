"""Memory-saving parts for existing training code, each one argument away."""

from __future__ import annotations

import importlib
from typing import Any

# Where each public name lives; nothing is imported before it is asked for.
_WHERE = {
    "LightVecEnv": "workers.vecenv",
    "LightVectorEnv": "workers.vectorenv",
    "shared": "sharing.data",
    "build_once": "sharing.once",
    "Window": "windows.layout",
    "stack": "windows.layout",
    "WindowArray": "windows.windowed",
    "WindowRolloutBuffer": "windows.rollout",
    "WindowMaskableRolloutBuffer": "windows.rollout_contrib",
    "WindowRecurrentRolloutBuffer": "windows.rollout_contrib",
    "WindowReplayBuffer": "windows.replay",
    "WindowHerReplayBuffer": "windows.replay",
    "MicroBatchPPO": "updates.microbatch",
    "micro_batch_for": "updates.size",
    "fit_micro_batch": "updates.probe",
    "accumulate": "updates.accumulation",
    "micro_batches": "updates.accumulation",
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
