"""Classes whose calls tell what a training loop does: envs, what collects from them, estimators.

An env's class has `step`, and beside it something that only envs have. A collector of TorchRL may
let other processes step its envs; then each batch that it gives is a rollout. An estimator is as
scikit-learn has them, and learns in `fit`.
"""

from __future__ import annotations

import copy
import functools
import math
import os
from collections.abc import Callable, Iterator
from types import FunctionType, MethodType
from typing import Any, Protocol

from memfit.libraries.loop.playback import Playback

_STEPS = ("step", "step_and_maybe_reset")
_BESIDE = ("reset", "get_observations", "action_space")
_FITS = ("fit", "partial_fit")
_SPACES = ("action_space", "action_spec")  # what an env has that is also a network


class Heard(Protocol):
    """Who is told: it hears of the process `pid` alone."""

    pid: int
    depth: int  # of the calls of envs that are under way
    updates: int
    fitting: int  # estimators that are
    steps: int
    playback: Playback | None

    def stepped(self, env: Any, steps: int) -> None:
        """The outermost env was stepped, or a batch was collected."""

    def updated(self) -> None:
        """Something has learned."""


def watch(cls: type, heard: Heard) -> None:
    """Let a class tell of its calls, if it is one of envs, collectors or estimators."""
    own = vars(cls)
    if hasattr(cls, "predict") and hasattr(cls, "get_params"):
        for name in _FITS:
            if type(own.get(name)) is FunctionType:
                setattr(cls, name, _Fit(heard, own[name]))
    collect = own.get("iterator")
    if type(collect) is FunctionType and hasattr(cls, "update_policy_weights_"):
        cls.iterator = _Collect(heard, collect)  # type: ignore[attr-defined]
    steps = {name: own[name] for name in _STEPS if type(own.get(name)) is FunctionType}
    if not steps or not _is_env(cls):
        return
    for name, step in steps.items():
        setattr(cls, name, _Step(heard, step))
    if type(own.get("reset")) is FunctionType:
        cls.reset = _Reset(heard, own["reset"])  # type: ignore[attr-defined]


def _is_env(cls: type) -> bool:
    if hasattr(cls, "zero_grad"):  # an optimizer, or a network
        return any(hasattr(cls, name) for name in _SPACES)
    return any(hasattr(cls, name) for name in _BESIDE)


def envs_of(env: Any) -> int:
    """How many envs are stepped at once."""
    for name in ("num_envs", "env_num"):
        count = getattr(env, name, None)
        if isinstance(count, int) and count > 0:
            return count
    batch = getattr(env, "batch_size", None)
    return math.prod(batch) if isinstance(batch, tuple) and batch else 1


class _Watched:
    """A method of a class, that tells of its calls.

    Pickled with its class, it is the method itself: a worker gets nothing of memfit's.
    """

    def __init__(self, heard: Heard, own: Callable[..., Any]) -> None:
        self.heard = heard
        self.own = own
        functools.update_wrapper(self, own)

    def __call__(self, thing: Any, /, *args: Any, **kwargs: Any) -> Any:
        """The method, on an object."""
        return self.own(thing, *args, **kwargs)

    def __get__(self, thing: Any, owner: type | None = None) -> Any:
        return self if thing is None else MethodType(self, thing)

    def __reduce__(self) -> tuple[Any, ...]:
        return copy.copy, (self.own,)  # which gives a function back as it is


class _Step(_Watched):
    def __call__(self, env: Any, /, *args: Any, **kwargs: Any) -> Any:
        heard, step = self.heard, self.own
        if os.getpid() != heard.pid or (heard.depth and heard.playback is None):
            return step(env, *args, **kwargs)
        heard.depth += 1
        try:
            playback, updates = heard.playback, heard.updates
            if playback is None:
                result = step(env, *args, **kwargs)
            else:
                result = playback.step(env, envs_of(env), lambda: step(env, *args, **kwargs))
        finally:
            heard.depth -= 1
        # What updates by itself is an agent, no env.
        if not heard.depth and heard.updates == updates:
            heard.stepped(env, envs_of(env))
        return result


class _Fit(_Watched):
    def __call__(self, estimator: Any, /, *args: Any, **kwargs: Any) -> Any:
        heard = self.heard
        heard.fitting += 1
        try:
            return self.own(estimator, *args, **kwargs)
        finally:
            heard.fitting -= 1
            if not heard.fitting and os.getpid() == heard.pid:
                heard.updated()


class _Reset(_Watched):
    def __call__(self, env: Any, /, *args: Any, **kwargs: Any) -> Any:
        heard, reset = self.heard, self.own
        playback = heard.playback
        if os.getpid() != heard.pid or playback is None:
            return reset(env, *args, **kwargs)
        heard.depth += 1
        try:
            return playback.reset(env, lambda: reset(env, *args, **kwargs))
        finally:
            heard.depth -= 1


class _Collect(_Watched):
    def __call__(self, collector: Any, /, *args: Any, **kwargs: Any) -> Iterator[Any]:
        heard = self.heard
        steps = heard.steps
        for batch in self.own(collector, *args, **kwargs):
            if os.getpid() == heard.pid and heard.steps == steps:
                frames = getattr(collector, "requested_frames_per_batch", 1)
                heard.stepped(collector, max(1, int(frames)))
            steps = heard.steps
            yield batch
