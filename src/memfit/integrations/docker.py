"""Docker: the options of `docker run` that give memory."""

from __future__ import annotations

from memfit.model import MemoryRequest

_SHARED_MIB = 64  # that /dev/shm has without being asked


def paste(request: MemoryRequest) -> str:
    """The options of a container; /dev/shm counts towards its memory."""
    shared = max(_SHARED_MIB, request.shared_mib)
    return f"docker run --memory={request.memory_mib}m --shm-size={shared}m IMAGE\n"
