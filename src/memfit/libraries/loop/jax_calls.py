"""Notices what a JAX program does: compiled functions that are called, and which of them learn.

A compiled function learns where a gradient was taken while it was traced. Calls are dispatched and
come back at once, so that a run's whole training may still be at work after its call.
"""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import MethodType, ModuleType
from typing import Any, Protocol

from memfit.model.training import ModuleHook

_GRADIENTS = ("grad", "value_and_grad", "vjp")
_COMPILED = "/jax/core/compile/backend_compile_duration"


class Heard(Protocol):
    """Who is told."""

    pid: int

    def updated(self, running: Callable[[], bool] | None = None) -> None:
        """A compiled function that learns was called; `running` says whether it still works."""

    def called(self) -> None:
        """A compiled function that does not learn was called."""

    def compiled(self, *, learns: bool) -> None:
        """A program has been compiled, and what `learns` is about to begin."""

    def awaits(self) -> None:
        """The script is going to learn by gradients."""


class JaxCalls:
    """What is put on the modules of JAX."""

    def __init__(self, heard: Heard) -> None:
        self.heard = heard
        self.inside = threading.local()
        self.gradients = 0  # that were taken so far
        self.called: weakref.WeakSet[Any] = weakref.WeakSet()
        self.learning: weakref.WeakSet[Any] = weakref.WeakSet()  # functions, as they were written
        self.lowered = False  # a function that learns was compiled ahead of its call

    def hooks(self) -> dict[str, ModuleHook]:
        """By module, what to change in it."""
        return {"jax": self._watch, "optax": lambda module: self.heard.awaits()}

    def _watch(self, jax: ModuleType) -> None:
        for name in ("jit", "pmap"):
            if hasattr(jax, name):
                setattr(jax, name, self._compiling(getattr(jax, name)))
        for name in _GRADIENTS:
            setattr(jax, name, self._differentiating(getattr(jax, name)))
        compiled = jax.stages.Compiled
        call = compiled.__call__

        @functools.wraps(call)
        def called(program: Any, *args: Any, **kwargs: Any) -> Any:
            return self.call(program, lambda: call(program, *args, **kwargs), self.lowered)

        compiled.__call__ = called
        jax.monitoring.register_event_duration_secs_listener(self._event)

    def _event(self, event: str, seconds: float, **_: Any) -> None:
        if event == _COMPILED and os.getpid() == self.heard.pid:
            traced = self.gradients - getattr(self.inside, "before", self.gradients)
            self.heard.compiled(learns=traced > 0)

    def _compiling(self, compiles: Any) -> Any:
        @functools.wraps(compiles)
        def jit(*args: Any, **kwargs: Any) -> Any:
            made = compiles(*args, **kwargs)
            if args or "fun" in kwargs:
                return _Jitted(self, made)
            return lambda function: _Jitted(self, made(function))  # with options alone

        return jit

    def _differentiating(self, transform: Any) -> Any:
        @functools.wraps(transform)
        def transformed(*args: Any, **kwargs: Any) -> Any:
            made = transform(*args, **kwargs)
            if not callable(made):  # vjp has called it already
                self.gradients += 1
                return made

            @functools.wraps(made)
            def gradient(*inner: Any, **options: Any) -> Any:
                self.gradients += 1
                return self.call(transformed, lambda: made(*inner, **options), True)

            return gradient

        return transformed

    def call(self, function: Any, work: Callable[[], Any], learns: bool = False) -> Any:
        """Call a compiled function, or take a gradient, and tell of it if it is the outermost."""
        if getattr(self.inside, "depth", 0) or os.getpid() != self.heard.pid:
            return work()
        written = _written(function)
        if not learns and written in self.called and written not in self.learning:
            # Told before the call: what takes time after it would keep the run from letting go of
            # the arrays that the result takes the place of, while that is computed already.
            self.heard.called()
            return work()
        self.called.add(written)
        with self._noticed(function):
            result = work()
        if learns or written in self.learning:
            self.heard.updated(_running(result))
        return result

    @contextmanager
    def _noticed(self, function: Any) -> Iterator[None]:
        """Whether gradients are taken meanwhile is what the function is known by."""
        self.inside.depth = getattr(self.inside, "depth", 0) + 1
        before = self.inside.before = self.gradients
        try:
            yield
        finally:
            self.inside.depth -= 1
            del self.inside.before
            if self.gradients > before:
                self.learning.add(_written(function))

    def lower(self, function: Any, work: Callable[[], Any]) -> Any:
        """Trace a function ahead of its call."""
        with self._noticed(function):
            lowered = work()
        self.lowered |= _written(function) in self.learning
        return lowered


class _Jitted:
    """A compiled function that tells of its calls; in all else it is that function."""

    def __init__(self, calls: JaxCalls, own: Any) -> None:
        self._calls = calls
        self._own = own
        functools.update_wrapper(self, own)
        self.__wrapped__ = getattr(own, "__wrapped__", own)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._calls.call(self._own, lambda: self._own(*args, **kwargs))

    def __get__(self, thing: Any, owner: type | None = None) -> Any:
        return self if thing is None else MethodType(self, thing)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial, (self._own,)  # another process gets nothing of memfit's

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        return self._calls.lower(self._own, lambda: self._own.lower(*args, **kwargs))


def _written(function: Any) -> Any:
    """The function that was compiled; a method's, whatever it is bound to."""
    own = getattr(function, "__wrapped__", function)
    return getattr(own, "__func__", own)


def _running(result: Any) -> Callable[[], bool] | None:
    """Says whether what gave this result is still at work; None where it is not known."""
    import jax

    leaves = (leaf for leaf in jax.tree.leaves(result) if hasattr(leaf, "is_ready"))
    first = next(leaves, None)
    return None if first is None else functools.partial(_is_awaited, weakref.ref(first))


def _is_awaited(watched: weakref.ref[Any]) -> bool:
    array = watched()
    return array is not None and not array.is_deleted() and not array.is_ready()
