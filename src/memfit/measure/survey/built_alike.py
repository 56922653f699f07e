"""Finds what each env builds anew although it is the same for all, and nobody changes it.

Two envs are built while their calls are watched. What a function or a class gave for the same
arguments, is still held, and is the same in both after some steps, could be there once.
"""

from __future__ import annotations

import hashlib
import inspect
import io
import pickle
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

_LEAST = 64 * 2**10  # of one result
_MOST_CALLS = 16  # of one builder in one env: what is called more often builds small things
_MOST_ARGUMENTS, _MOST_RESULT = 2**22, 2**28  # bytes that are pickled
_STEPS, _SECONDS = 32, 0.5
_LONGEST = 3.0  # seconds of work that one env takes: watched, it takes several times as long
_HELD = 2  # references to what nobody else has: the call's, and that of counting them
_NO_ENVS = ("gymnasium", "gym", "stable_baselines3", "numpy", "torch", "builtins")


@dataclass(frozen=True, kw_only=True)
class BuiltAlike:
    """Builders by `module:name`, and at least how much each env has of their results."""

    names: tuple[str, ...] = ()
    bytes: int = 0


@dataclass(kw_only=True)
class _Call:
    """One call of a builder: what it was given, what it gave, and the builders it was part of."""

    name: str
    arguments: str
    within: tuple[str, ...]
    result: Any = None
    digest: str = ""
    bytes: int = 0


def built_alike(make: Callable[[], Any]) -> BuiltAlike:
    """What two envs built alike; nothing where they cannot be built, or tell of nothing."""
    if sys.getprofile() is not None:
        return BuiltAlike()
    try:
        begun = time.process_time()
        packages = _packages(_env_of(make()))
        if time.process_time() - begun > _LONGEST:
            return BuiltAlike()
        envs: list[Any] = []
        watched: list[list[_Call]] = []
        for _ in range(2):
            watch = _Watch(packages=packages)
            sys.setprofile(watch.event)
            try:
                made = make()
            finally:
                sys.setprofile(None)
            envs.append(_env_of(made))
            watched.append(watch.calls)
            del made
        _step(envs)
        return _alike(*watched)
    except Exception:  # noqa: BLE001 - an env that cannot be built twice has nothing to share
        return BuiltAlike()


def _env_of(made: Any) -> Any:
    return made[0] if isinstance(made, tuple) else made


def _packages(env: Any) -> frozenset[str]:
    """The packages whose classes an env and its wrappers are of, but for libraries."""
    found, seen = set(), 0
    while env is not None and seen < 64:
        found.add(type(env).__module__.partition(".")[0])
        env, seen = getattr(env, "env", None), seen + 1
    return frozenset(found.difference(_NO_ENVS))


@dataclass(kw_only=True)
class _Watch:
    """Hears calls of one building, and notes those of builders."""

    packages: frozenset[str]
    calls: list[_Call] = field(default_factory=list)
    _open: dict[int, _Call] = field(default_factory=dict)
    _counted: Counter[Any] = field(default_factory=Counter)

    def event(self, frame: FrameType, kind: str, given: Any) -> None:
        if kind == "call":
            self._begin(frame)
        elif kind == "return" and (call := self._open.pop(id(frame), None)) is not None:
            own = next(iter(frame.f_locals.values()), None)
            self._end(call, own if frame.f_code.co_name == "__init__" else given)

    def _begin(self, frame: FrameType) -> None:
        code = frame.f_code
        module = str(frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] not in self.packages or self._counted[code] >= _MOST_CALLS:
            return
        self._counted[code] += 1
        name = _name(frame, module)
        if not name:
            return
        own = code.co_name == "__init__"
        size, digest = _digest(list(frame.f_locals.values())[own:], _MOST_ARGUMENTS)
        if size:
            within = tuple(call.name for call in self._open.values())
            self._open[id(frame)] = _Call(name=name, arguments=digest, within=within)

    def _end(self, call: _Call, result: Any) -> None:
        if result is None or isinstance(result, int | float | str | bytes):
            return
        call.bytes, call.digest = _digest(result, _MOST_RESULT)
        if call.bytes >= _LEAST:
            call.result = result
            self.calls.append(call)


def _name(frame: FrameType, module: str) -> str:
    """`module:name` of what a frame runs, where that is a function of a module or a class."""
    code = frame.f_code
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE):
        return ""
    if code.co_name != "__init__":
        found = getattr(frame.f_globals.get(code.co_name), "__code__", None)
        return f"{module}:{code.co_name}" if found is code else ""
    own = next(iter(frame.f_locals.values()), None)
    kind: Any = type(own)
    init = kind.__dict__.get("__init__")
    known = getattr(sys.modules.get(kind.__module__), kind.__name__, None) is kind
    plain = kind.__new__ is object.__new__ and not hasattr(kind, "step")  # an env is one's own
    same = getattr(init, "__code__", None) is code
    return f"{kind.__module__}:{kind.__name__}" if known and plain and same else ""


class _Sink(io.RawIOBase):
    """Takes what is pickled, and keeps its hash and its length."""

    def __init__(self, most: int) -> None:
        self.hash, self.bytes, self.most = hashlib.blake2b(digest_size=16), 0, most

    def write(self, data: Any) -> int:
        amount = memoryview(data).nbytes
        self.bytes += amount
        if self.bytes > self.most:
            raise OverflowError
        self.hash.update(data)
        return amount


class _Pickler(pickle.Pickler):
    """Also takes surfaces of pygame, which show their pixels as a buffer."""

    def reducer_override(self, obj: Any) -> Any:
        if hasattr(type(obj), "get_buffer") and hasattr(type(obj), "get_size"):
            return bytes, (obj.get_buffer().raw,)
        return NotImplemented


def _digest(thing: Any, most: int) -> tuple[int, str]:
    """Length and hash of a thing as pickle stores it; 0 where it cannot, or it is too much."""
    sink = _Sink(most)
    try:
        _Pickler(sink, protocol=5).dump(thing)
    except Exception:  # noqa: BLE001 - objects raise what they like
        return 0, ""
    return sink.bytes, sink.hash.hexdigest()


def _step(envs: list[Any]) -> None:
    """Some steps in each env, so that what they change is seen."""
    until = time.perf_counter() + _SECONDS
    for env in envs:
        for _ in range(_STEPS):
            _, _, ended, cut, _ = env.step(env.action_space.sample())
            if ended or cut:
                env.reset()
            if time.perf_counter() > until:
                break


def _alike(first: list[_Call], second: list[_Call]) -> BuiltAlike:
    """The builders all of whose results are the same in both envs, and are still held."""
    known: dict[tuple[str, str], str] = {(c.name, c.arguments): c.digest for c in first}
    good: dict[str, bool] = {}
    for call in (*first, *second):
        held = sys.getrefcount(call.result) > _HELD
        same = known.get((call.name, call.arguments)) == call.digest
        fits = held and same and _digest(call.result, _MOST_RESULT)[1] == call.digest
        good[call.name] = good.get(call.name, True) and fits
    names = {name for name, fits in good.items() if fits}
    outer = [call for call in second if call.name in names and not names & set(call.within)]
    return BuiltAlike(
        names=tuple(sorted({call.name for call in outer})), bytes=sum(c.bytes for c in outer)
    )
