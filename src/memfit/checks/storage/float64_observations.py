"""MF007: observations are stored as float64.

What: the observation space is float64, and the buffer keeps it so. The policy turns every minibatch
into float32 before it uses it.

Why: half of the buffer holds digits that no network ever sees. Often it is an accident: numpy makes
float64 unless told otherwise, and so does `gymnasium.spaces.Box` when asked for `dtype=float`. An
environment that cannot be changed can be wrapped: `memfit.dropins.NarrowObservation(env,
numpy.float32, on_loss="round")` rounds as the policy does.

Bad:
    import numpy
    import gymnasium

    observation_space = gymnasium.spaces.Box(-1, 1, (300,), dtype=numpy.float64)

Good:
    import numpy
    import gymnasium

    observation_space = gymnasium.spaces.Box(-1, 1, (300,), dtype=numpy.float32)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memfit.checks._arrays import dtype_name
from memfit.checks._rows import named, resized
from memfit.checks.spot import Spot
from memfit.model import Changes, Finding, Fix, Kind, Ledger, RunSpec, Severity
from memfit.model.changes import OBSERVATION
from memfit.syntax import Source, argument, calls, last_name, number
from memfit.units import format_bytes

CODE = "MF007"
SEVERITY = Severity.INFO
COPIES = ("rollout_buffer.flatten_copy", "save.replay_copy")


def find_in_source(source: Source) -> Iterator[Spot]:
    for call in calls(source, ("gymnasium", "gym"), ("Box",)):
        given = argument(call, "dtype", 3)
        if given is not None and dtype_name(source, given) == "float64" and _observed(source, call):
            if _is_tiny(source, argument(call, "shape", 2)):
                continue
            yield Spot(call, "a space of observations is float64", "dtype=np.float32")


def _is_tiny(source: Source, shape: ast.expr | None) -> bool:
    """Whether it has a few numbers, as in a test of an env."""
    dims = shape.elts if isinstance(shape, ast.Tuple | ast.List) else [shape]
    sizes = [number(source, d) for d in dims]
    return bool(sizes) and all(s is not None and s < 4 for s in sizes) and len(sizes) < 3


def _observed(source: Source, call: ast.Call) -> bool:
    """Whether it is for observations: an action space is not stored as wide."""
    for above in source.ancestors(call):
        if isinstance(above, ast.Assign | ast.AnnAssign):
            target = above.targets[0] if isinstance(above, ast.Assign) else above.target
            return "obs" in last_name(target)
    return False


def find(spec: RunSpec, ledger: Ledger, limit: int) -> Iterator[Finding]:
    names = _names(spec)
    amount = named(ledger, names)
    if not amount:
        return
    yield Finding(
        code=CODE,
        severity=Severity.WARNING if 20 * amount >= ledger.peak.bytes else Severity.INFO,
        message=f"{format_bytes(amount)} of observations are float64; "
        "the policy uses them as float32",
        where=", ".join(f"model.{name}" for name in names),
        bytes=amount // 2,
    )


def fix(spec: RunSpec, ledger: Ledger) -> Iterator[Fix]:
    names = _names(spec)
    buffers = [c for c in ledger.components if c.kind is Kind.BUFFER]
    largest = max(buffers, key=ledger.bytes_of)
    copies = COPIES if largest.name in names else ()  # they are of the largest array
    yield Fix(
        change="observations as float32 (dtype of the space, and what step and reset return), or "
        'memfit.dropins.NarrowObservation(env, numpy.float32, on_loss="round")',
        ledger=resized(ledger, (*names, *copies), lambda size: size // 2),
        safe=not _normalised(spec),  # else rounding comes before what is worked out of them
        to_rounding=_normalised(spec),
        estimated=True,  # minibatches are smaller too
        changes=Changes(parts={OBSERVATION: "NarrowObservation"}),
    )


def _normalised(spec: RunSpec) -> bool:
    """Whether running means are made of the observations: they would see rounded ones."""
    wrappers = spec.vec_env.wrappers if spec.vec_env is not None else ()
    return any("Normalize" in name for name in wrappers)


def _names(spec: RunSpec) -> list[str]:
    return [a.name for a in spec.arrays if a.dtype == "float64" and "observations" in a.name]
