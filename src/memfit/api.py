"""The verbs of memfit. The only place, beside the child, that wires the rooms together."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from memfit.errors import MemfitError, NeverLearned, TargetFailed, UsageError
from memfit.model import Plan, Readings, RunSpec

Progress = Callable[[str], None]


def plan(
    target: str | Path,
    *,
    args: Sequence[str] = (),
    probe: bool = False,
    limit: int | None = None,
    knobs: Mapping[str, int] | None = None,
    on: Sequence[str] = (),
    timeout: float = 120.0,
    progress: Progress | None = None,
) -> Plan:
    """Predict the peak memory of a run before it starts."""
    from memfit.analyses.capacity import capacity, default_hardware, parse_hardware
    from memfit.analyses.crossing import crossing
    from memfit.analyses.upper import upper_bytes
    from memfit.formulas import sb3 as formulas
    from memfit.measure import limits, sandbox
    from memfit.measure.base import import_base
    from memfit.model import Limit

    started = time.monotonic()
    found = limits.memory_limit()
    job = {**_job(str(target), args), "probe": probe, "limit": limit or found.bytes}
    with ThreadPoolExecutor(max_workers=1) as pool:
        base = pool.submit(import_base, ("numpy", "gymnasium", "torch", "stable_baselines3"))
        answer = sandbox.run(
            job, timeout=timeout, memory=int(found.bytes * 0.9), progress=progress
        )
        spec, readings = _surveyed(answer, str(target))
        readings = replace(readings, base=base.result())
    ledger = formulas.ledger(spec, readings)
    if knobs:
        ledger = ledger.at(**_known_knobs(knobs, ledger.knobs))
    limit_used = Limit(bytes=limit, source="--limit") if limit is not None else found
    hardware = [parse_hardware(name) for name in on] or default_hardware()
    peak = ledger.peak.bytes
    return Plan(
        target=str(target),
        spec=spec,
        ledger=ledger,
        peak_bytes=peak,
        upper_bytes=upper_bytes(ledger),
        limit=limit_used,
        method="probe" if probe else "survey",
        capacity=tuple(capacity(ledger, h) for h in hardware),
        crossing=crossing(ledger, limit_used.bytes) if peak > limit_used.bytes else None,
        notes=(*spec.notes, *readings.notes),
        seconds=time.monotonic() - started,
        planner_peak_bytes=answer.peak_bytes,
        changed=dict(knobs or {}),
    )


def _job(target: str, args: Sequence[str]) -> dict[str, Any]:
    """Tell a script from a factory and a spec."""
    path = Path(target)
    if path.suffix == ".toml":
        return {"kind": "spec", "target": str(path), "args": []}
    if path.is_file():
        return {"kind": "script", "target": str(path), "args": list(args)}
    module, colon, factory = target.partition(":")
    if colon and module and factory.isidentifier() and "/" not in module:
        return {"kind": "factory", "target": target, "args": []}
    raise UsageError(
        f"there is no file {target!r}: give a training script (train.py), a run spec (run.toml) "
        "or a factory (package.module:function)"
    )


def _surveyed(answer: Any, target: str) -> tuple[RunSpec, Readings]:
    """The child's facts and readings, or the error that its status stands for."""
    fields = answer.fields
    status = fields["status"]
    if status == "surveyed":
        return RunSpec.from_json(fields["spec"]), Readings.from_json(fields["readings"])
    raise _error(status, fields, answer.output, target)


def _error(status: str, fields: Mapping[str, Any], output: str, target: str) -> MemfitError:
    own = str(fields.get("output", ""))
    if status == "never learned":
        return NeverLearned(
            f"{target} ended without calling learn() of a stable-baselines3 model: memfit plans the "
            "call to learn(); check the script's arguments, or describe the run in a spec (run.toml)",
            output=output,
        )
    if status == "target failed":
        if "EOFError: EOF when reading a line" in own:
            return NeverLearned(
                f"{target} reads standard input, and a plan gives it none: "
                "pass its answers as arguments after --",
                output=own,
            )
        return TargetFailed(
            f"{target} failed before it began to learn: mend the error above, then plan again",
            output=(output + own).strip(),
        )
    if status == "over limit":
        return NeverLearned(
            f"{target} used more than {fields['memory']} before it began to learn and was ended: "
            "plan it on a larger machine, or describe the run in a spec",
            output=output,
        )
    return TargetFailed(
        f"{target} could not be surveyed ({status}): see the output above",
        output=(output + own).strip(),
    )


def _known_knobs(knobs: Mapping[str, int], known: Mapping[str, int]) -> dict[str, int]:
    unknown = sorted(set(knobs) - set(known))
    if unknown:
        raise UsageError(
            f"this run has no setting {', '.join(unknown)}: it has {', '.join(sorted(known))}"
        )
    if bad := [name for name, value in knobs.items() if value < 1]:
        raise UsageError(f"{', '.join(bad)} must be at least 1: use --set {bad[0]}=1 or more")
    return dict(knobs)
