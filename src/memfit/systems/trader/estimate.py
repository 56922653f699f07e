"""What a trial will hold, by arithmetic of its own networks and buffers.

A first trial is measured once: what it takes beside its own arrays is the same for every trial,
and so is what a rollout worker takes. All else follows from the settings.
"""

from __future__ import annotations

from dataclasses import dataclass

from memfit.systems.trader.settings import ACTIONS, Settings

# A trial that is as small as it can be without being another program.
PROBE = {"width": 64, "batch": 256, "threads": 1, "steps": 512, "iterations": 2}
# Of the estimate: what an allocator leaves unused between blocks.
MARGIN = 0.12
FLOAT = 4
# Tensors of batch x width that one backward pass holds at its worst: two hidden layers' outputs,
# and an input and two gradients on their way.
HIDDEN = 5
# A thread of torch: its stack as far as it is used, its heap, and buffers of matrix products.
THREAD = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Base:
    """What a measured trial took beside its own arrays, and what a worker took."""

    private: int
    files: int
    worker: int


def parameter_count(state: int, width: int) -> tuple[int, int]:
    """Parameters of an actor and of a critic, by arithmetic."""
    body = (state + 1) * width + (width + 1) * width
    return body + (width + 1) * ACTIONS + ACTIONS, body + width + 1


def arrays(settings: Settings) -> dict[str, int]:
    """Bytes of everything that a trial's settings make larger or smaller, by name."""
    actor, critic = parameter_count(settings.state, settings.width)
    transition = settings.state + ACTIONS + 2
    rollout = settings.portfolios * (settings.horizon * (transition * FLOAT + 1))
    batch, count = min(settings.batch, settings.steps), settings.portfolios * settings.horizon
    return {
        "parameters": (actor + critic) * FLOAT,
        "gradients": (actor + critic) * FLOAT,
        "optimizer": (actor + critic) * 2 * FLOAT,
        "weights for workers": actor * FLOAT,
        "rollout": rollout,
        "advantages, returns, order": count * (3 * FLOAT + 8),
        "minibatch": batch * (transition + 2) * FLOAT,
        "activations": batch * settings.width * HIDDEN * FLOAT,
        "optimizer's scratch": 2 * settings.width**2 * FLOAT,
        "threads": settings.threads * THREAD,
    }


def base_of(measured_private: int, files: int, worker: int, probe: Settings) -> Base:
    """The base that a measured trial shows."""
    own = sum(arrays(probe).values())
    return Base(
        private=max(0, measured_private - own - worker * probe.workers), files=files, worker=worker
    )


def private_bytes(settings: Settings, base: Base) -> int:
    """The most that a trial should hold of its own, without the files that all trials share."""
    return base.private + settings.workers * base.worker + sum(arrays(settings).values())


def share_bytes(settings: Settings, base: Base) -> int:
    """What a trial is given: its estimate, and a margin for what an allocator wastes."""
    return int(private_bytes(settings, base) * (1 + MARGIN))
