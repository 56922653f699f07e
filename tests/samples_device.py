"""A snapshot as torch writes it: a training that runs out of memory between blocks it keeps."""

from __future__ import annotations

from typing import Any

from memfit.device.caching_allocator import CachingAllocator
from memfit.model.device_snapshot import DeviceEvent
from memfit.units import MIB
from tests.device.programs import Program

TRAIN = {"filename": "/home/user/train.py", "line": 31, "name": "update"}
LINEAR = {"filename": "/venv/torch/nn/modules/linear.py", "line": 134, "name": "forward"}
STEP = {"filename": "/venv/torch/optim/adam.py", "line": 196, "name": "_init_group"}
LOAD = {"filename": "/home/user/train.py", "line": 12, "name": "load"}
STACKS: dict[int, list[dict[str, Any]]] = {
    20 * MIB: [LINEAR, TRAIN],
    40 * MIB: [STEP, TRAIN],
    50 * MIB: [LOAD],
}


def out_of_memory() -> Program:
    """Holes of 20 MiB among what is kept, none of which holds 50 MiB, on a card of 240 MiB."""
    program = Program(CachingAllocator(capacity=240 * MIB))
    program.ask(40 * MIB)
    program.ask(200 * MIB)
    program.drop(1)
    for _ in range(10):
        program.ask(20 * MIB)
    for hole in (9, 7, 5, 3):
        program.drop(hole)
    program.ask(50 * MIB)
    return program


def written(program: Program, **more: Any) -> dict[str, Any]:
    """What torch would pickle."""
    found = program.snapshot()
    return {
        "segments": [
            {
                "device": 0,
                "address": segment.address,
                "total_size": segment.size,
                "stream": segment.stream,
                "segment_type": "small" if segment.small else "large",
                "segment_pool_id": (0, 0),
                "is_expandable": segment.expandable,
                "blocks": [
                    {
                        "address": block.address,
                        "size": block.size,
                        "requested_size": block.requested,
                        "state": "active_allocated" if block.allocated else "inactive",
                        "frames": STACKS.get(block.requested, []),
                    }
                    for block in segment.blocks
                ],
            }
            for segment in found.segments
        ],
        "device_traces": [[_event(event) for event in found.events]],
        "allocator_settings": {"expandable_segments": False, "max_split_size": -1},
        **more,
    }


def _event(event: DeviceEvent) -> dict[str, Any]:
    row = {
        "action": event.action,
        "addr": event.address,
        "size": event.size,
        "stream": event.stream,
        "frames": STACKS.get(event.size, []),
    }
    if event.action == "oom":
        del row["addr"]
        row["device_free"] = 0
    return row
