"""Finds pictures that pile up in a list while a script runs: videos, rendered frames."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from types import FrameType
from typing import Any

from memfit.child.script_variables import attributes, script_variables
from memfit.model import HeldFrames

LEAST_FRAMES = 4
_SMALLEST_FRAME = 4096  # bytes: what is smaller is no picture
_WRAPPERS = 32  # the most that stand around one env
_AROUND = ("env", "venv", "envs")  # how a wrapper, or a vector env, names what it is around


def held_frames(frame: FrameType | None, script: str) -> HeldFrames | None:
    """The largest list of pictures that a thread's functions, or the script's variables, hold."""
    seen: dict[int, tuple[str, Any, Any]] = {}
    things = list(script_variables(frame, script))
    for name, thing in things:
        _note_lists(name, thing, seen)
    found = max(seen.values(), key=lambda one: len(one[1]) * _each(one[1]), default=None)
    if found is None:
        return None
    name, pictures, owner = found
    length = getattr(owner, "video_length", 0)
    envs = [owner] if owner is not None else [thing for _, thing in things]
    return HeldFrames(
        holder=name,
        count=len(pictures),
        each_bytes=_each(pictures),
        shape=tuple(map(int, pictures[-1].shape)),
        line=0,
        video_length=length if isinstance(length, int) else 0,  # endless ones are floats
        episode_steps=max(map(_episode_steps, envs), default=0),
    )


def _note_lists(name: str, thing: Any, seen: dict[int, tuple[str, Any, Any]]) -> None:
    if _is_pictures(thing):
        seen.setdefault(id(thing), (name, thing, None))
        return
    for one in _layers(thing):
        for attribute, value in list(attributes(one).items()):
            if _is_pictures(value):
                # What has an owner that knows more is told by it.
                seen[id(value)] = (f"{type(one).__name__}.{attribute}", value, one)


def _is_pictures(thing: Any) -> bool:
    """Whether it is a list of arrays that look like pictures, and alike."""
    if type(thing) not in (list, deque) or len(thing) < LEAST_FRAMES:
        return False
    try:
        first, last = thing[0], thing[-1]
    except IndexError:  # emptied meanwhile
        return False
    return _is_picture(last) and getattr(first, "shape", None) == last.shape


def _is_picture(thing: Any) -> bool:
    if type(thing).__name__ != "ndarray" or type(thing).__module__ != "numpy":
        return False
    return thing.ndim in (2, 3) and thing.nbytes >= _SMALLEST_FRAME


def _each(pictures: Any) -> int:
    try:
        return int(pictures[-1].nbytes)
    except IndexError:
        return 0


def _layers(thing: Any) -> Iterator[Any]:
    """A thing and what it is wrapped around, the outermost first."""
    for _ in range(_WRAPPERS):
        yield thing
        own = attributes(thing)
        inner = next((own[name] for name in _AROUND if own.get(name) is not None), None)
        if isinstance(inner, list):
            inner = inner[0] if inner else None
        if inner is None:
            return
        thing = inner


def _episode_steps(thing: Any) -> int:
    """After how many steps a time limit ends an episode; 0 where there is none."""
    for one in _layers(thing):
        steps = attributes(one).get("_max_episode_steps")
        if isinstance(steps, int):
            return steps
    return 0
