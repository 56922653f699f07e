"""Kubernetes: the part of a pod's spec that asks for memory."""

from __future__ import annotations

from memfit.model import MemoryRequest

_CONTAINER = """\
containers:
  - name: train
    resources:
      requests:
        memory: {memory}Mi
      limits:
        memory: {memory}Mi
"""
# A pod's own /dev/shm has 64 MiB. What lies there counts towards the container's limit.
_SHARED = """\
    volumeMounts:
      - name: shared-memory
        mountPath: /dev/shm
volumes:
  - name: shared-memory
    emptyDir:
      medium: Memory
      sizeLimit: {shared}Mi
"""


def paste(request: MemoryRequest) -> str:
    """What goes into the spec of a pod; requests equal limits, so that it is not evicted first."""
    text = _CONTAINER.format(memory=request.memory_mib)
    return text + _SHARED.format(shared=request.shared_mib) if request.shared_bytes else text
