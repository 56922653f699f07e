"""Figures of the allocators: malloc, pymalloc, and torch's on devices."""

from __future__ import annotations

import sys
from typing import Any

_OTHERS = ("jemalloc", "tcmalloc", "mimalloc")


def pools() -> dict[str, Any]:
    """Figures of each allocator that there is.

    malloc: `in_use_bytes` given out from its arenas, `free_bytes` held though free, `mmapped_bytes`
    in blocks of their own, `top_bytes` of the free ones at the end of the heap, `arena_bytes` all
    that the arenas have from the kernel. pymalloc: `blocks` given out. torch: for each device,
    `allocated_bytes` and `reserved_bytes`.
    """
    pymalloc = {"blocks": sys.getallocatedblocks()}
    return {"pymalloc": pymalloc, "malloc": _malloc(), "torch": _torch()}


def _malloc() -> dict[str, Any]:
    figures = malloc_figures()
    if figures is None:
        return {}
    return {
        "allocator": _allocator(),
        "arena_bytes": figures.arena,
        "in_use_bytes": figures.uordblks,
        "free_bytes": figures.fordblks,
        "top_bytes": figures.keepcost,
        "mmapped_bytes": figures.hblkhd,
        "mmapped_blocks": figures.hblks,
    }


_calls: dict[str, Any] = {}  # of the C library, once each was looked for


def malloc_figures() -> Any:
    """What malloc says of itself, None where it is another C library's, or from before 2021."""
    if "mallinfo2" not in _calls:
        _calls["mallinfo2"] = _mallinfo2()
    ask = _calls["mallinfo2"]
    return None if ask is None else ask()


def _mallinfo2() -> Any:
    import ctypes

    class MallInfo(ctypes.Structure):
        _fields_ = [
            (name, ctypes.c_size_t)
            for name in (
                *("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks"),
                *("uordblks", "fordblks", "keepcost"),
            )
        ]

    try:
        ask = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError):
        return None
    ask.restype, ask.argtypes = MallInfo, []
    return ask


def _allocator() -> str:
    """Which malloc the process has: figures of glibc's say little where it has another."""
    with open("/proc/self/maps") as file:
        names = {line.rsplit("/", 1)[-1].strip() for line in file if "/" in line}
    return next((o for o in _OTHERS if any(o in name for name in names)), "glibc")


def _torch() -> dict[str, Any]:
    """The caching allocator of each device that the target uses already."""
    found: dict[str, Any] = {}
    cuda = sys.modules.get("torch.cuda")
    try:
        if cuda is None or not cuda.is_initialized():
            return found
        for number in range(cuda.device_count()):
            figures = cuda.memory_stats(number)
            found[f"cuda:{number}"] = {
                "allocated_bytes": figures.get("allocated_bytes.all.current", 0),
                "reserved_bytes": figures.get("reserved_bytes.all.current", 0),
            }
    except Exception:  # noqa: BLE001 - a device that does not answer is not told
        return found
    return found
