"""What a run would hold with memfit's windowed buffers in the place of the library's own.

Bytes are those of the formulas, while no episode ends; a replay's are near them, as a test says.
"""

from __future__ import annotations

from collections.abc import Callable

from memfit.checks._rows import resized
from memfit.formulas import dropin_arrays
from memfit.formulas.array_bytes import fixed_bytes
from memfit.model import ArraySpec, Kind, Ledger, RunSpec, Size, const, knob, minimum

ROLLOUTS = ("RolloutBuffer", "DictRolloutBuffer")
REPLAYS = ("ReplayBuffer", "DictReplayBuffer")
WINDOW_ROLLOUT, WINDOW_REPLAY = "WindowRolloutBuffer", "WindowReplayBuffer"
ROLLOUT_COSTS = "adding a step takes longer, a minibatch less"  # see benchmarks/speed
FLATTEN_COPY = "rollout_buffer.flatten_copy"
OBSERVATIONS, NEXT = "observations", "next_observations"


def stacked(spec: RunSpec) -> int:
    """How many frames the library's own buffer stores with each observation."""
    own = spec.buffer in (ROLLOUTS[0], REPLAYS[0])
    return spec.vec_env.stack if own and spec.vec_env is not None else 1


def parts(spec: RunSpec, name: str) -> list[ArraySpec]:
    """The arrays of a buffer that have this name: one, or one for each key of a Dict."""
    return [a for a in spec.arrays if a.name.split(".")[1:2] == [name]]


def window_rollout(spec: RunSpec, ledger: Ledger, stack: int = 1) -> Ledger:
    """The ledger with WindowRolloutBuffer, which flattens all but observations with a copy."""
    observations = parts(spec, OBSERVATIONS)
    names = [a.name for a in observations]
    rest = [c for c in ledger.components if c.kind is Kind.BUFFER and c.name not in names]
    copied = max(rest, key=ledger.bytes_of).size if rest else const(0)
    ledger = resized(ledger, (FLATTEN_COPY,), lambda _: minimum(knob("n_envs") - 1, 1) * copied)
    for array in observations:
        once = dropin_arrays.window_rollout(length=stack, row_bytes=fixed_bytes(array) // stack)
        ledger = resized(ledger, (array.name,), _always(once))
    return ledger


def window_replay(spec: RunSpec, ledger: Ledger, stack: int = 1) -> Ledger:
    """The ledger with WindowReplayBuffer, which keeps of next observations where they begin."""
    names = [a.name for a in parts(spec, OBSERVATIONS)]
    ledger = resized(ledger, names, lambda size: size // stack)
    for array in parts(spec, NEXT):
        ledger = resized(ledger, (array.name,), _only_starts(fixed_bytes(array)))
    return ledger


def _always(size: Size) -> Callable[[Size], Size]:
    return lambda _: size


def _only_starts(one: int) -> Callable[[Size], Size]:
    return lambda size: size * (2 * dropin_arrays.START_BYTES) // one
