"""Notices what any training loop does: envs that are stepped, optimizers, checkpoints.

The outermost of envs that call each other counts. All of torch's optimizers have hooks of their
own. Where a script has made none, each backward pass, gradient of JAX or `fit` of an estimator is
an update.
"""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, TypeVar

from memfit.libraries.loop.jax_calls import JaxCalls
from memfit.libraries.loop.main_code import WATCHED
from memfit.libraries.loop.playback import Playback
from memfit.libraries.loop.process_calls import ProcessCalls
from memfit.libraries.loop.ray_calls import RayCalls
from memfit.libraries.loop.seldom import DUE
from memfit.libraries.loop.watched_classes import watch
from memfit.model.training import LoopListener, ModuleHook

_SAVES = {"torch.serialization": "save", "pickle": "dump"}
_Class = TypeVar("_Class", bound=type)


class Signals:
    """Passes on what the loop does, to whoever listens, in the process that the script runs in."""

    def __init__(self) -> None:
        self.listener: LoopListener | None = None
        self.begun: Callable[[], None] | None = None
        self.playback: Playback | None = None
        self.pid = 0
        self.depth = 0
        self.updates = 0
        self.steps = 0
        self.played = 0  # env steps
        self.optimizers = 0
        self.awaited = False
        self.fitting = 0
        self.jax = JaxCalls(self)
        self.ray = RayCalls(self)
        self.processes = ProcessCalls(self)

    def start(self, begun: Callable[[], None], *, play_back: bool) -> None:
        """Notice from now on; `begun` is called when a loop does something for the first time."""
        self.begun, self.pid = begun, os.getpid()
        self.playback = Playback() if play_back else None

    def stop(self) -> None:
        """Notice nothing any more."""
        self.listener = self.begun = self.playback = None
        self.pid = 0

    @property
    def learning(self) -> set[str]:
        """Names of JAX's functions that learn."""
        return {str(getattr(one, "__name__", "")) for one in self.jax.learning}

    # -- what is put on ----------------------------------------------------------------------------

    def hooks(self) -> dict[str, ModuleHook]:
        """By module, what to change in it."""
        saves = {module: self._watch_saving(name) for module, name in _SAVES.items()}
        return {
            "builtins": self._watch_classes,
            "torch.optim.optimizer": self._watch_optimizers,
            "torch.autograd": self._watch_gradients,
            **self.jax.hooks(),
            **self.ray.hooks(),
            **self.processes.hooks(),
            **saves,
        }

    def _watch_classes(self, builtins: ModuleType) -> None:
        """Classes of modules that are imported from now on, and those of the main module's code.

        Nothing may stand around a class while it is made: its decorators and its metaclass may
        look at the frame that makes it.
        """
        setattr(builtins, WATCHED, self.watched)
        setattr(builtins, DUE, self.due)
        bootstrap: Any = importlib._bootstrap
        load = bootstrap._load_unlocked

        def loaded(spec: Any) -> Any:
            module = load(spec)
            for cls in _classes_of(module):
                self.watched(cls)
            return module

        bootstrap._load_unlocked = loaded

    def watched(self, cls: _Class) -> _Class:
        """The same class, which tells of its calls if it is one of envs."""
        watch(cls, self)
        return cls

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
        if not self.updates and not self.steps:
            for cls in _all_classes():  # some are made where nobody sees it, in functions
                self.watched(cls)
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

    def stepped(self, env: Any, steps: int) -> None:
        """The outermost env was stepped, or a batch was collected."""
        self.steps += 1
        self._begin()
        if self.listener is not None:
            self.listener.stepped(env, steps)
            self._goes_on()

    def called(self) -> None:
        """A compiled function of JAX that learns nothing was called."""
        self._begin()
        self._goes_on()

    def started_process(self) -> None:
        """The script has started processes, and asks for what they give."""
        self._begin()
        if self.listener is not None:
            self.listener.started_process()

    def waits_for(self, running: Callable[[], bool]) -> None:
        """The script waits for the end of a process of its own."""
        self._begin()
        if self.listener is not None:
            self.listener.waits_for(running)

    def compiled(self, *, learns: bool) -> None:
        """A program of JAX has been compiled, and what `learns` is about to begin."""
        if learns:
            self._begin()
        if self.listener is not None:
            self.listener.compiled()

    def due(self, value: Any, place: str) -> Any:
        """Whether what comes every so often comes now: by its own condition, or brought forward."""
        if self.listener is None or os.getpid() != self.pid:
            return value
        return self.listener.due(place, now=bool(value)) or value

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


def _classes_of(module: Any) -> Iterator[type]:
    """The classes that a module has made."""
    if not isinstance(module, ModuleType):
        return
    for thing in list(vars(module).values()):
        if issubclass(type(thing), type) and thing.__module__ == module.__name__:
            yield thing


def _all_classes() -> Iterator[type]:
    seen: set[type] = set()
    below: list[type] = [object]
    while below:
        under: list[type] = type.__subclasses__(below.pop())
        for cls in under:
            if cls not in seen:
                seen.add(cls)
                below.append(cls)
                yield cls
