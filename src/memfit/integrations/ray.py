"""Ray: the demand of a task, an actor or a trial, which Ray's scheduler keeps."""

from __future__ import annotations

from memfit.model import MemoryRequest


def paste(request: MemoryRequest) -> str:
    """Arguments for a remote function or actor, and for trials of Tune."""
    amount = f"{request.memory_bytes:_}"
    return (
        f"@ray.remote(memory={amount})\n"
        f'tune.with_resources(train, {{"cpu": 1, "memory": {amount}}})\n'
    )
