"""What one observation is made of, what a step allocates, and what several envs have alike.

Gathered in a child of its own: looking keeps things, which no run that is judged may do.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from memfit.model.profile import ObservationPart, Shareable, Stepped

if TYPE_CHECKING:
    from memfit.child.env.stepped_env import EnvChild

_FRAMES = 40
_MOST_SEARCHED = 1 << 20  # bytes of an array in which another is looked for
_LEAST_SHARED = 64 << 10
_DEEPEST, _MOST_ITEMS = 7, 64
_ALIKE = 0.9


def observed(child: EnvChild) -> Stepped:
    """Facts of the first environment's observations, and of arrays that two have alike."""
    import numpy as np

    first = child.slots[0]
    held = {} if len(child.slots) < 2 else _arrays(first.unwrapped)
    before = {path: _digest(array) for path, array in held.items()}
    parts = {key: _part(key, array) for key, array in _flat(first.observation)}
    last = {key: (id(a), _address(a), a.copy()) for key, a in _flat(first.observation)}
    same: dict[str, int] = {}
    repeats: dict[str, list[float]] = {}
    for _ in range(_FRAMES):
        child.step_to(child.frames + 1, child.frames + 1)
        for key, array in _flat(first.observation):
            if key in last:
                same[key] = same.get(key, 0) + (last[key][1] == _address(array))
                repeats.setdefault(key, []).append(_repeated(last[key][2], array))
            last[key] = id(array), _address(array), array.copy()
    final = dict(_flat(first.observation))
    found = []
    for key, part in parts.items():
        fresh = same.get(key, 0) < _FRAMES // 2
        share = float(np.median(repeats.get(key, [0.0])))
        found.append(replace(part, fresh=fresh, repeats=share, within=_within(key, final)))
    last.clear()
    return Stepped(
        env=first.name,
        frames=child.frames,
        episodes=child.episodes,
        observation=tuple(found),
        allocated_per_step=_allocated(child),
        copied_per_step=sum(p.bytes for p in found if p.fresh and not p.view_of),
        shareable=tuple(_shareable(child, held, before)),
    )


def _flat(observation: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """The arrays of an observation, by key."""
    if isinstance(observation, dict):
        for name, part in observation.items():
            yield from _flat(part, f"{key}.{name}" if key else str(name))
    elif isinstance(observation, tuple):
        for number, part in enumerate(observation):
            yield from _flat(part, f"{key}[{number}]")
    elif hasattr(observation, "nbytes") and hasattr(observation, "__array_interface__"):
        yield key or "observation", observation


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def _part(key: str, array: Any) -> ObservationPart:
    base = array.base
    whole = getattr(base, "nbytes", 0) if base is not None else 0
    return ObservationPart(
        key=key,
        dtype=str(array.dtype),
        shape=tuple(array.shape),
        bytes=array.nbytes,
        view_of=whole if whole > array.nbytes else 0,
    )


def _repeated(before: Any, now: Any) -> float:
    """Which share of an observation's frames the one before had, moved along one axis."""
    best = 0.0
    if before.shape != now.shape:
        return best
    for axis, size in enumerate(now.shape):
        if not 2 <= size <= _MOST_ITEMS:
            continue
        old, new = before.swapaxes(0, axis), now.swapaxes(0, axis)
        if (old[1:] == new[:-1]).all() and not (old[1:] == new[1:]).all():
            best = max(best, (size - 1) / size)
    return best


def _within(key: str, parts: dict[str, Any]) -> str:
    """Another part that has all of this one in it."""
    own = parts.get(key)
    if own is None or own.size < 8 or (own == own.flat[0]).all():
        return ""
    text = own.tobytes()
    for name, other in parts.items():
        larger = other.dtype == own.dtype and own.nbytes < other.nbytes <= _MOST_SEARCHED
        if name != key and larger and text in other.tobytes():
            return name
    return ""


def _allocated(child: EnvChild) -> int:
    """What a step takes beyond what was there, at its peak: the mean of some."""
    tracemalloc.start()
    try:
        sizes = []
        for _ in range(_FRAMES):
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            child.step_to(child.frames + 1, child.frames + 1)
            sizes.append(max(0, tracemalloc.get_traced_memory()[1] - before))
    finally:
        tracemalloc.stop()
    return sum(sizes) // len(sizes)


# -- what several environments have alike ----------------------------------------------------------


def _arrays(thing: Any) -> dict[str, Any]:
    """The larger arrays of an environment, by their path."""
    found: dict[str, Any] = {}
    seen: set[int] = set()

    def look(thing: Any, path: str, depth: int) -> None:
        if id(thing) in seen or depth > _DEEPEST:
            return
        seen.add(id(thing))
        if hasattr(thing, "__array_interface__") and hasattr(thing, "nbytes"):
            if thing.nbytes >= _LEAST_SHARED:
                found[path] = thing
        elif isinstance(thing, dict):
            for key, value in list(thing.items())[:_MOST_ITEMS]:
                look(value, f"{path}[{key!r}]", depth + 1)
        elif isinstance(thing, (list, tuple)):
            for number, value in enumerate(thing[:_MOST_ITEMS]):
                look(value, f"{path}[{number}]", depth + 1)
        elif isinstance(getattr(thing, "__dict__", None), dict) and not isinstance(thing, type):
            for name, value in list(vars(thing).items()):
                look(value, f"{path}.{name}", depth + 1)

    look(thing, "env", 0)
    return found


def _digest(array: Any) -> bytes:
    import numpy as np

    return blake2b(np.ascontiguousarray(array).view(np.uint8).data, digest_size=16).digest()


def _shareable(
    child: EnvChild, held: dict[str, Any], before: dict[str, bytes]
) -> Iterator[Shareable]:
    """Arrays that did not change while the env was stepped, and that each env has a copy of."""
    import numpy as np

    if not held:
        return
    others = [_arrays(slot.unwrapped) for slot in child.slots[1:]]
    for path, array in sorted(held.items(), key=lambda item: -item[1].nbytes):
        if array.dtype.hasobject or _digest(array) != before[path]:
            continue
        copies = 1
        for other in others:
            twin = other.get(path)
            if twin is None or twin.shape != array.shape or twin.dtype != array.dtype:
                continue
            if not np.may_share_memory(twin, array) and (twin == array).all():
                copies += 1
        if copies == len(child.slots):
            yield Shareable(path=path, bytes=array.nbytes, copies=copies, saves_bytes=array.nbytes)
