"""Notices what any training loop does: envs that are stepped, optimizers, checkpoints.

An env is any object whose class has `step` and `reset`, of Gymnasium or not; the outermost of those
that call each other counts. All of torch's optimizers have hooks of their own. Where a script has
made none, each backward pass, gradient of JAX or `fit` of an estimator is an update.
"""

from __future__ import annotations

import copy
import functools
import os
from collections.abc import Callable
from types import FunctionType, MethodType, ModuleType
from typing import Any

from memfit.libraries.loop.jax_calls import JaxCalls
from memfit.libraries.loop.playback import Playback
from memfit.model.training import LoopListener, ModuleHook

_SAVES = {"torch.serialization": "save", "pickle": "dump"}


class Signals:
    """Passes on what the loop does, to whoever listens, in the process that the script runs in."""

    def __init__(self) -> None:
        self.listener: LoopListener | None = None
        self.begun: Callable[[], None] | None = None
        self.playback: Playback | None = None
        self.pid = 0
        self.depth = 0
        self.updates = 0
        self.played = 0  # env steps
        self.optimizers = 0
        self.awaited = False
        self.fitting = 0

    def start(self, begun: Callable[[], None], *, play_back: bool) -> None:
        """Notice from now on; `begun` is called when a loop does something for the first time."""
        self.begun, self.pid = begun, os.getpid()
        self.playback = Playback() if play_back else None

    def stop(self) -> None:
        """Notice nothing any more."""
        self.listener = self.begun = self.playback = None
        self.pid = 0

    # -- what is put on ----------------------------------------------------------------------------

    def hooks(self) -> dict[str, ModuleHook]:
        """By module, what to change in it."""
        saves = {module: self._watch_saving(name) for module, name in _SAVES.items()}
        return {
            "builtins": self._watch_classes,
            "torch.optim.optimizer": self._watch_optimizers,
            "torch.autograd": self._watch_gradients,
            **JaxCalls(self).hooks(),
            **saves,
        }

    def _watch_classes(self, builtins: ModuleType) -> None:
        build: Any = builtins.__build_class__

        @functools.wraps(build)
        def build_class(*args: Any, **kwargs: Any) -> Any:
            made = build(*args, **kwargs)
            if isinstance(made, type):
                self.watch_env(made)
                self.watch_estimator(made)
            return made

        builtins.__build_class__ = build_class  # type: ignore[attr-defined]

    def watch_env(self, cls: type) -> None:
        """Watch a class, if it is one of envs."""
        own = vars(cls)
        step = own.get("step")
        if type(step) is not FunctionType or hasattr(cls, "zero_grad"):
            return
        if not callable(getattr(cls, "reset", None)):
            return
        cls.step = _Step(self, step)  # type: ignore[attr-defined]
        if type(own.get("reset")) is FunctionType:
            cls.reset = _Reset(self, own["reset"])  # type: ignore[attr-defined]

    def watch_estimator(self, cls: type) -> None:
        """Watch a class, if it is one of estimators as scikit-learn has them."""
        for name in ("partial_fit", "fit"):
            own = vars(cls).get(name)
            if type(own) is FunctionType and hasattr(cls, "predict") and hasattr(cls, "get_params"):
                setattr(cls, name, _Fit(self, own))

    def _watch_gradients(self, module: ModuleType) -> None:
        for name in ("backward", "grad"):
            setattr(module, name, self._differentiating(getattr(module, name)))

    def _differentiating(self, gradients: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(gradients)
        def differentiate(*args: Any, **kwargs: Any) -> Any:
            found = gradients(*args, **kwargs)
            if os.getpid() == self.pid and not self.optimizers:
                self.updated()
            return found

        return differentiate

    def _watch_optimizers(self, module: ModuleType) -> None:
        build = module.Optimizer.__init__

        @functools.wraps(build)
        def built(*args: Any, **kwargs: Any) -> None:
            self.optimizers += 1
            build(*args, **kwargs)

        module.Optimizer.__init__ = built

        def updated(optimizer: Any, args: Any, kwargs: Any) -> None:
            if os.getpid() == self.pid:
                self.updated()

        module.register_optimizer_step_post_hook(updated)

    def _watch_saving(self, name: str) -> ModuleHook:
        def hook(module: ModuleType) -> None:
            save = getattr(module, name)

            @functools.wraps(save)
            def saving(*args: Any, **kwargs: Any) -> Any:
                listener = self.listener if os.getpid() == self.pid else None
                if listener is not None:
                    listener.saving()
                try:
                    return save(*args, **kwargs)
                finally:
                    if listener is not None:
                        listener.saved()

            setattr(module, name, saving)

        return hook

    # -- what happens ------------------------------------------------------------------------------

    def updated(self, running: Callable[[], bool] | None = None) -> None:
        """An optimizer has made a step, or something else has learned, and may be `running`."""
        self.updates += 1
        self._begin()
        if self.playback is not None:
            self.played = self.playback.played
            self.playback.end()
            self.playback = None
        if self.listener is not None:
            self.listener.updated()
            if running is not None:
                self.listener.works_on(running)

    def stepped(self, env: Any) -> None:
        """The outermost env was stepped."""
        self._begin()
        if self.listener is not None:
            self.listener.stepped(env, envs_of(env))
            self._goes_on()

    def called(self) -> None:
        """A compiled function of JAX that learns nothing was called."""
        self._begin()
        self._goes_on()

    def compiled(self) -> None:
        """A program of JAX has been compiled."""
        if self.listener is not None:
            self.listener.compiled()

    def awaits(self) -> None:
        """The script has what learns, and has not begun to."""
        self.awaited = True

    def _goes_on(self) -> None:
        """Tell where nothing is known that could update."""
        known = self.updates or self.optimizers or self.awaited
        if self.listener is not None and not known:
            self.listener.goes_on()

    def _begin(self) -> None:
        begun, self.begun = self.begun, None
        if begun is not None:
            begun()


def envs_of(env: Any) -> int:
    """How many envs are stepped at once."""
    count = getattr(env, "num_envs", 1)
    return count if isinstance(count, int) and count > 0 else 1


class _Watched:
    """A method of an env's class, or an estimator's, that tells of its calls.

    Pickled with its class, it is the method itself: a worker gets nothing of memfit's.
    """

    def __init__(self, signals: Signals, own: Callable[..., Any]) -> None:
        self.signals = signals
        self.own = own
        functools.update_wrapper(self, own)

    def __call__(self, env: Any, *args: Any, **kwargs: Any) -> Any:
        """The method, on an env."""
        return self.own(env, *args, **kwargs)

    def __get__(self, thing: Any, owner: type | None = None) -> Any:
        return self if thing is None else MethodType(self, thing)

    def __reduce__(self) -> tuple[Any, ...]:
        return copy.copy, (self.own,)  # which gives a function back as it is


class _Step(_Watched):
    def __call__(self, env: Any, *args: Any, **kwargs: Any) -> Any:
        signals, step = self.signals, self.own
        if os.getpid() != signals.pid or signals.depth:
            return step(env, *args, **kwargs)
        signals.depth += 1
        try:
            playback, updates = signals.playback, signals.updates
            if playback is None:
                result = step(env, *args, **kwargs)
            else:
                result = playback.step(env, lambda: step(env, *args, **kwargs))
        finally:
            signals.depth -= 1
        if signals.updates == updates:  # what updates by itself is an agent, no env
            signals.stepped(env)
        return result


class _Fit(_Watched):
    def __call__(self, env: Any, *args: Any, **kwargs: Any) -> Any:
        signals = self.signals
        signals.fitting += 1
        try:
            return self.own(env, *args, **kwargs)
        finally:
            signals.fitting -= 1
            if not signals.fitting and os.getpid() == signals.pid:
                signals.updated()


class _Reset(_Watched):
    def __call__(self, env: Any, *args: Any, **kwargs: Any) -> Any:
        signals, reset = self.signals, self.own
        playback = signals.playback
        if os.getpid() != signals.pid or signals.depth or playback is None:
            return reset(env, *args, **kwargs)
        signals.depth += 1
        try:
            return playback.reset(env, lambda: reset(env, *args, **kwargs))
        finally:
            signals.depth -= 1
