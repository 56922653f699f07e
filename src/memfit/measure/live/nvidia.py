"""Memory of NVIDIA devices by process, where NVIDIA's own library answers."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence

_LIBRARY = "libnvidia-ml.so.1"
_MOST = 1024


class _Process(ctypes.Structure):
    _fields_ = [
        ("pid", ctypes.c_uint),
        ("used", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


def used_by(pids: Sequence[int]) -> dict[str, int]:
    """Bytes that these processes have on each device; empty where there is none."""
    try:
        library = ctypes.CDLL(_LIBRARY)
        if library.nvmlInit_v2():
            return {}
    except (OSError, AttributeError):
        return {}
    try:
        return {name: used for name, used in _devices(library, set(pids)) if used}
    finally:
        library.nvmlShutdown()


def _devices(library: ctypes.CDLL, pids: set[int]) -> Iterator[tuple[str, int]]:
    count = ctypes.c_uint()
    library.nvmlDeviceGetCount_v2(ctypes.byref(count))
    for index in range(count.value):
        handle = ctypes.c_void_p()
        if library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)):
            continue
        name = ctypes.create_string_buffer(96)
        library.nvmlDeviceGetName(handle, name, 96)
        found = (_Process * _MOST)()
        number = ctypes.c_uint(_MOST)
        if library.nvmlDeviceGetComputeRunningProcesses_v3(handle, ctypes.byref(number), found):
            continue
        used = sum(int(p.used) for p in found[: number.value] if p.pid in pids)
        yield f"{index}: {name.value.decode(errors='replace')}", used
