"""Finds the large arrays that a script's variables hold where it would begin to learn."""

from __future__ import annotations

import os
from collections import deque
from types import FrameType, FunctionType, ModuleType
from typing import Any

from memfit.child.script_variables import attributes, script_variables
from memfit.measure.kernel.process_memory import ProcessMemory

LEAST = 2**20
_MOST_OBJECTS = 20_000
_MOST_DEPTH = 5
_NOT_ENTERED = (str, bytes, int, float, type, ModuleType, FunctionType)


def held_arrays(frame: FrameType | None, script: str, without: object) -> dict[str, int]:
    """The resident bytes of each large array, by its path from a variable.

    What `without` holds, and what envs hold, have rows of their own.
    """
    found: dict[str, int] = {}
    seen, owners = {id(without)}, set[int]()
    queue = deque((name, thing, 0) for name, thing in script_variables(frame, script))
    with ProcessMemory(os.getpid()) as memory:
        while queue and len(seen) < _MOST_OBJECTS:
            path, thing, depth = queue.popleft()
            if id(thing) in seen or issubclass(type(thing), _NOT_ENTERED):
                continue
            seen.add(id(thing))
            if (place := _place(thing)) is not None:
                start, end, owner = place
                if end - start >= LEAST and owner not in owners:
                    owners.add(owner)
                    found[path] = memory.resident(start, end)
            elif depth < _MOST_DEPTH and not _is_env(thing):
                queue.extend((p, inner, depth + 1) for p, inner in _parts(path, thing))
    return {path: held for path, held in found.items() if held >= LEAST}


def _place(thing: Any) -> tuple[int, int, int] | None:
    """Where an array's numbers begin and end, and which object owns them; None if it is none.

    Tensors that are trained have a row of their own.
    """
    kind = type(thing)
    if kind.__module__ == "numpy" and kind.__name__ == "ndarray":
        while type(thing.base) is kind:
            thing = thing.base
        start = int(thing.ctypes.data)
        return start, start + int(thing.nbytes), id(thing)
    if kind.__module__.startswith("torch") and kind.__name__ in ("Tensor", "Parameter"):
        if thing.requires_grad or thing.device.type != "cpu":
            return 0, 0, 0
        start = int(thing.data_ptr())
        return start, start + int(thing.nbytes), start
    return None


def _parts(path: str, thing: Any) -> list[tuple[str, Any]]:
    if type(thing) is dict:
        keys = [(key, value) for key, value in list(thing.items()) if type(key) in (str, int)]
        return [(f"{path}[{key!r}]", value) for key, value in keys]
    if type(thing) in (list, tuple):
        return [(f"{path}[{i}]", value) for i, value in enumerate(list(thing))]
    return [(f"{path}.{name}", value) for name, value in list(attributes(thing).items())]


def _is_env(thing: Any) -> bool:
    return all(callable(getattr(type(thing), name, None)) for name in ("reset", "step"))
