"""One copy of read-only data for all envs and processes.

    level = shared(lambda: load_level(3))

The first process that asks for the data makes it; the others get the same memory. It is gone
when the last array of the last process is, however processes end.
"""

from __future__ import annotations

import mmap
import os
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from memfit.dropins.sharing.find import Turn, find, read, write
from memfit.dropins.sharing.key import code_digest, named_digest, own_digest, run_token
from memfit.dropins.sharing.pack import pack, unpack
from memfit.errors import Unsupported, UsageError

Data = TypeVar("Data")

# Processes that are started later inherit the name of the run.
run_token()

_held: weakref.WeakValueDictionary[str, mmap.mmap] = weakref.WeakValueDictionary()
_lock = threading.RLock()


def _new_lock() -> None:
    global _lock  # noqa: PLW0603 - a fork has only one thread, and another may have held it
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_new_lock)


def shared(factory: Callable[[], Data], *, key: str | None = None) -> Data:
    """What `factory` gives, with arrays that lie in memory once for all processes, read-only.

    Without a key, calls mean the same data if the factory's code and the values it uses are the
    same, within one run. A key names data for all programs of the user.
    """
    if sys.platform != "linux":
        raise Unsupported("shared() needs Linux. Call the factory itself here")
    if not callable(factory):
        raise UsageError("shared() takes a function that makes the data. Give lambda: load(...)")
    if key is not None and not (key and type(key) is str):
        raise UsageError(f"key={key!r} is no name. Give a text such as 'level-3'")
    digest = own_digest(factory) if key is None else named_digest(key)
    with _lock:
        memory = _held.get(digest)
        if memory is None:
            memory = _found_or_made(digest, factory, key)
            _held[digest] = memory
    origin, structure, arrays = read(memory)
    if key is not None:
        _check_origin(origin, factory, key)
    found: Data = unpack(structure, arrays)
    return found


def shared_nbytes(factory: Callable[[], Any], *, key: str | None = None) -> int:
    """Bytes of shared memory that data takes; 0 if this process does not hold it."""
    memory = _held.get(own_digest(factory) if key is None else named_digest(key))
    return 0 if memory is None else len(memory)


def _found_or_made(digest: str, factory: Callable[[], Any], key: str | None) -> mmap.mmap:
    turn = Turn(digest)
    while True:
        memory = find(digest)
        if memory is not None:
            return memory
        if turn.take():
            break
        turn.wait()
    try:
        # It may have been made between looking and taking the turn.
        return find(digest) or _made(digest, factory, key)
    finally:
        turn.give_back()


def _made(digest: str, factory: Callable[[], Any], key: str | None) -> mmap.mmap:
    structure, arrays = pack(factory())
    origin = {"process": os.getpid()}
    if key is not None:
        origin |= _origin(factory)
    return write(digest, origin, structure, arrays)


def _origin(factory: Callable[[], Any]) -> dict[str, Any]:
    """What data under a key was made by; nothing is compared where that cannot be told."""
    code = getattr(factory, "__code__", None)
    where = f"{code.co_filename}:{code.co_firstlineno}" if code else repr(factory)
    try:
        return {"code": code_digest(factory), "where": where}
    except UsageError:
        return {"code": None, "where": where}


def _check_origin(origin: dict[str, Any], factory: Callable[[], Any], key: str) -> None:
    mine = _origin(factory)
    if None not in (origin["code"], mine["code"]) and origin["code"] != mine["code"]:
        raise UsageError(
            f"key={key!r} already names other data: process {origin['process']} made it by "
            f"{origin['where']}, this is {mine['where']}. Give other data another key; for the "
            "same data call the same function"
        )
