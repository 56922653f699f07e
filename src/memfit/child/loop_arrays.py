"""The arrays that a running loop's variables hold, found without disturbing the loop.

While the loop is still to be measured, a fork looks: what looking takes is gone with it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import threading
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from memfit.child.loop_lists import Length, Variables, queues_of
from memfit.inside.holders import array_rows
from memfit.inside.pace import Pace
from memfit.inside.walk_phases import WholeWalk
from memfit.libraries import all_roles
from memfit.measure.kernel.process_memory import ProcessMemory
from memfit.model.json_loader import from_json, to_json
from memfit.model.trial import TrialArrays

_SECONDS = 20.0  # after which a fork that looks is ended
_PART = 1 << 16
_TENSORDICT = "._tensordict["  # where one has its tensors, which it gives as a dict does


def loop_arrays(queues: Mapping[str, Length], memory: ProcessMemory) -> list[TrialArrays]:
    """What the variables of the run hold, by holder, the largest first."""
    walk = WholeWalk(Pace(lambda: False), dict(all_roles()))
    try:
        walk.run(variables_only=True)
        told = array_rows(walk.blocks)
    finally:
        walk.forget()
    found = [_held(row, memory) for row in told if row["device"] == "cpu"]
    return [_in_queue(held, queues) for held in found]


def _in_queue(held: TrialArrays, queues: Mapping[str, Length]) -> TrialArrays:
    for path, length in queues.items():
        at = held.path.find(f"{path}[*]")
        if at == 0 or (at > 0 and held.path[at - 1] == "."):
            most = length.most
            return replace(held, elements=length.elements, capacity=most, grows=not most)
    return held


def looked_at_here(
    variables: Variables = (), growing: Mapping[str, Length] | None = None
) -> list[TrialArrays]:
    """The same from a thread of its own, so that this one's calls are seen too.

    Lists that are `growing` are told as queues are.
    """
    with ProcessMemory(os.getpid()) as memory:
        return _looked_at(variables, memory, growing or {})


def _looked_at(
    variables: Variables, memory: ProcessMemory, growing: Mapping[str, Length]
) -> list[TrialArrays]:
    queues = {**queues_of(variables), **growing}
    if threading.current_thread() is not threading.main_thread():
        return loop_arrays(queues, memory)
    found: list[TrialArrays] = []
    thread = threading.Thread(target=lambda: found.extend(loop_arrays(queues, memory)))
    thread.start()
    thread.join()
    return found


def looked_at_in_a_fork(variables: Variables = ()) -> list[TrialArrays]:
    """The same, found by a fork; nothing where that fails.

    Which pages are there is asked of this process: a fork has none of what is mapped from files.
    """
    with ProcessMemory(os.getpid()) as memory:
        return _forked(variables, memory)


def _forked(variables: Variables, memory: ProcessMemory) -> list[TrialArrays]:
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other threads are not needed there
        pid = os.fork()
    if pid == 0:
        try:
            os.close(reader)
            _tell(writer, _looked_at(variables, memory, {}))
        finally:
            os._exit(0)
    os.close(writer)
    told = b""
    try:
        while select.select([reader], [], [], _SECONDS)[0] and (part := os.read(reader, _PART)):
            told += part
    finally:
        os.close(reader)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    try:
        return [from_json(TrialArrays, row) for row in json.loads(told)]
    except ValueError:
        return []


def _tell(writer: int, rows: list[TrialArrays]) -> None:
    with open(writer, "w") as file:
        json.dump([to_json(row) for row in rows], file)


def _held(row: dict[str, Any], memory: ProcessMemory) -> TrialArrays:
    placed = sum(size for _, size in row["extents"])
    # Small blocks lie among others and are there.
    resident = row["nbytes"] - placed if placed < row["nbytes"] else 0
    resident += sum(memory.resident(start, start + size) for start, size in row["extents"])
    return TrialArrays(
        path=str(row["holder"]).replace(_TENSORDICT, "["),
        bytes=int(row["nbytes"]),
        resident=min(resident, int(row["nbytes"])),
        count=int(row["count"]),
        dtype=str(row["dtype"]),
        shape=tuple(row["shape"]),
        mapped=row["memory"] != "own",
    )
