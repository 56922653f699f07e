"""`plan`: predict the peak memory of a run before it starts."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memfit.analyses.earlier_learn import left_by, with_row
from memfit.api import second_learn
from memfit.errors import (
    MemfitError,
    MissingExtra,
    NeverLearned,
    SpecError,
    TargetFailed,
    Unsupported,
    UsageError,
)
from memfit.model import Component, Ledger, Plan, Readings, Rehearsed, RunSpec

if TYPE_CHECKING:
    from memfit.sources.torch import TorchRun

Progress = Callable[[str], None]

# The share of this machine's memory that a child may take, and how long a rehearsal goes on.
ROOM = 0.85
_REHEARSAL_SECONDS = 9.0


def plan(
    target: str | Path | TorchRun,
    *,
    args: Sequence[str] = (),
    probe: bool = False,
    limit: int | None = None,
    knobs: Mapping[str, int] | None = None,
    on: Sequence[str] = (),
    per: str = "",
    timeout: float = 120.0,
    progress: Progress | None = None,
) -> Plan:
    """Predict the peak memory of a run before it starts."""
    from memfit.analyses.capacity import capacity, default_hardware, parse_hardware
    from memfit.analyses.crossing import crossing
    from memfit.analyses.upper_bound import upper_bytes
    from memfit.checks import run_checks
    from memfit.measure.children import sandbox
    from memfit.measure.children.import_cost import import_base
    from memfit.measure.kernel import limits
    from memfit.model import Limit

    started = time.monotonic()
    hardware = [parse_hardware(name) for name in on] or default_hardware()
    found = limits.memory_limit()
    limit_used = Limit(bytes=limit, source="--limit") if limit is not None else found
    job = job_of(target, args, knobs)
    name: str = job["target"]
    room = int(found.bytes * ROOM)
    with ThreadPoolExecutor(max_workers=2) as pool:
        base = pool.submit(import_base, _libraries(job))
        second = (
            pool.submit(_second, job, timeout, room) if second_learn.learns_twice(job) else None
        )
        say(progress, "building the run in a child, up to its learn()")
        answer = sandbox.run(job, timeout=timeout, memory=room, progress=progress)
        spec, readings = _surveyed(answer, name)
        imports = base.result()
        if spec.update and job["kind"] == "factory":
            imports = import_base(("numpy", "torch"))
        readings = replace(readings, base=imports)
    ledger = _formulas(spec).ledger(spec, readings)
    own_peak = answer.peak_bytes
    said, earlier = second_learn.notes(job), None
    if second is not None:
        first = second_learn.Planned(job, spec, readings, ledger)
        (job, spec, readings, ledger), earlier, note = _heavier(first, second.result())
        said += (note,)
    if probe:
        say(progress, "rehearsing it")
        readings, own_peak = _rehearsed(job, spec, readings, ledger, room, timeout, progress)
        ledger = _reconciled(ledger, spec, readings)
    if earlier is not None:
        ledger = with_row(ledger, earlier)
    if knobs:
        ledger = ledger.at(**_known_knobs(knobs, ledger.knobs))
    if per:
        _known_knobs({per: 1}, ledger.knobs)
    peak = ledger.peak.bytes
    findings, advice = run_checks(spec, ledger, limit_used.bytes)
    return Plan(
        target=name,
        spec=spec,
        ledger=ledger,
        peak_bytes=peak,
        upper_bytes=upper_bytes(ledger, readings),
        limit=limit_used,
        method="probe" if probe else "survey",
        capacity=tuple(capacity(ledger, h) for h in hardware),
        crossing=crossing(ledger, limit_used.bytes) if peak > limit_used.bytes else None,
        findings=findings,
        advice=advice,
        notes=(*job.get("notes", ()), *spec.notes, *readings.notes, *said),
        seconds=time.monotonic() - started,
        planner_peak_bytes=max(answer.peak_bytes, own_peak),
        changed=dict(knobs or {}),
        per=per,
    )


def say(progress: Progress | None, text: str) -> None:
    if progress is not None:
        progress(text)


def _second(job: dict[str, Any], timeout: float, room: int) -> tuple[dict[str, Any], Any]:
    """What a script's second learn() says of itself, the first one skipped."""
    from memfit.measure.children import sandbox

    skipping = {**job, "skip": 1}
    try:
        return skipping, sandbox.run(skipping, timeout=timeout, memory=room).fields
    except NeverLearned:
        return skipping, {"status": "never learned"}


def _heavier(
    first: second_learn.Planned, found: tuple[dict[str, Any], Mapping[str, Any]]
) -> tuple[second_learn.Planned, Component | None, str]:
    """Which of two learn() calls needs more, what the first leaves, and what to say of it."""
    job, fields = found
    if fields["status"] != "surveyed" or fields["again"]:
        return first, None, second_learn.UNSEEN
    spec, readings = RunSpec.from_json(fields["spec"]), Readings.from_json(fields["readings"])
    readings = replace(readings, base=first.readings.base)
    ledger = _formulas(spec).ledger(spec, readings)
    left = left_by(first.ledger, alive=fields["earlier_alive"])
    if with_row(ledger, left).peak.bytes <= first.ledger.peak.bytes:
        return first, None, second_learn.FIRST
    return second_learn.Planned(job, spec, readings, ledger), left, second_learn.SECOND


def _formulas(spec: RunSpec) -> Any:
    """The formulas for a run's library."""
    return importlib.import_module(f"memfit.formulas.{'torch' if spec.update else 'sb3'}")


def _libraries(job: Mapping[str, Any]) -> tuple[str, ...]:
    """What the run's process imports before it does anything."""
    told = job.get("spec", {})
    if job["kind"] == "torch" or told.get("library") == "torch":
        return ("numpy", "torch", *told.get("imports", ()))
    return ("numpy", "gymnasium", "torch", "stable_baselines3", *told.get("imports", ()))


def _full_scale(spec: RunSpec, readings: Readings) -> Rehearsed:
    from memfit.formulas.buffer_arrays import filled_rows

    if spec.update:
        scale: int = _formulas(spec).scale(spec)
        return Rehearsed(batch=readings.batch, rows=scale, moments={})
    return Rehearsed(batch=readings.batch, rows=filled_rows(spec).evaluate(spec.knobs), moments={})


def _rehearsed(
    job: dict[str, Any],
    spec: RunSpec,
    readings: Readings,
    ledger: Ledger,
    room: int,
    timeout: float,
    progress: Progress | None,
) -> tuple[Readings, int]:
    """Rehearse at full size where the room allows, else at smaller sizes, in a child of its own."""
    from memfit.analyses.upper_bound import upper_bytes
    from memfit.measure.children import sandbox

    full = _full_scale(spec, readings)
    shrink = 1
    while shrink < 1024:
        smaller = _scaled(full, shrink)
        knobs = {**spec.knobs, **_knobs_at(spec, smaller)}
        if upper_bytes(ledger.at(**knobs), readings) <= room:
            break
        shrink *= 2
    shrinks = [shrink] if shrink == 1 else [4 * shrink, 2 * shrink, shrink]
    scales = [_scaled(full, s) for s in shrinks]
    answer = sandbox.run(
        {
            **job,
            "scales": [{"batch": s.batch, "rows": s.rows} for s in scales],
            "seconds": _REHEARSAL_SECONDS,
        },
        timeout=timeout,
        memory=room,
        progress=progress,
    )
    if answer.fields["status"] != "surveyed":
        note = "the rehearsal did not finish, so the plan is the one without it: "
        last = (answer.fields.get("output") or answer.output or answer.fields["status"]).strip()
        return replace(readings, notes=(*readings.notes, note + last.splitlines()[-1])), 0
    rehearsed = tuple(Rehearsed(**r) for r in answer.fields["rehearsed"])
    return replace(readings, rehearsed=rehearsed), answer.peak_bytes


def _scaled(full: Rehearsed, shrink: int) -> Rehearsed:
    return replace(full, batch=max(2, full.batch // shrink), rows=max(2, full.rows // shrink))


def _knobs_at(spec: RunSpec, scale: Rehearsed) -> dict[str, int]:
    """The knob values that stand for a smaller rehearsal."""
    if spec.update:
        changed: dict[str, int] = _formulas(spec).knobs_at(spec, scale.rows)
        return changed
    if spec.on_policy:
        return {"n_steps": scale.rows, "batch_size": scale.batch}
    envs = spec.knobs["n_envs"]
    return {"total_timesteps": scale.rows * envs, "batch_size": scale.batch}


def _reconciled(ledger: Ledger, spec: RunSpec, readings: Readings) -> Ledger:
    from memfit.analyses.reconcile import reconcile

    if not readings.rehearsed:
        return ledger
    return reconcile(ledger, readings.rehearsed, _full_scale(spec, readings))


def job_of(
    target: str | Path | TorchRun, args: Sequence[str], knobs: Mapping[str, int] | None = None
) -> dict[str, Any]:
    """Tell a script from a factory, a spec and live torch objects."""
    if not isinstance(target, (str, Path)):
        return _torch_job(target)
    path, target = Path(target), str(target)
    if path.suffix == ".toml":
        from memfit.sources import spec

        facts = spec.load(path, knobs)
        return {"kind": "spec", "target": target, "spec": facts, "notes": facts.pop("notes")}
    if path.is_file():
        _check_script(path)
        return {"kind": "script", "target": str(path), "args": list(args)}
    if path.is_dir():
        raise UsageError(f"{target} is a directory: name the script in it, such as {path}/train.py")
    module, colon, factory = target.partition(":")
    if colon and module and factory.isidentifier() and "/" not in module:
        return {"kind": "factory", "target": target, "args": []}
    raise UsageError(
        f"there is no file {target!r}: give a training script (train.py), a run spec (run.toml) "
        "or a factory (package.module:function)"
    )


def _torch_job(run: TorchRun) -> dict[str, Any]:
    """Live objects go to the child pickled; text, so that the job stays one file."""
    import base64

    try:
        import cloudpickle
    except ModuleNotFoundError:
        raise MissingExtra(
            "a TorchRun is sent to a child by cloudpickle, which is not installed: "
            "pip install 'memfit[torch]'"
        ) from None
    pickled = base64.b64encode(cloudpickle.dumps(run)).decode()
    return {"kind": "torch", "target": type(run.module).__name__, "pickle": pickled}


def _check_script(path: Path) -> None:
    """Refuse what cannot be a Python script; what is wrong inside one, Python says better."""
    if not os.access(path, os.R_OK):
        raise UsageError(f"{path} cannot be read: change its permissions, or name another script")
    if path.suffix in (".py", ".pyw"):
        return
    try:
        compile(path.read_bytes(), path, "exec")
    except (SyntaxError, ValueError):
        is_python = False
    else:
        is_python = not path.suffix
    if not is_python:
        raise UsageError(
            f"{path} is no Python script: give one (train.py), a run spec (run.toml) or a factory "
            "(package.module:function)"
        )


def _surveyed(answer: Any, target: str) -> tuple[RunSpec, Readings]:
    """The child's facts and readings, or the error that its status stands for."""
    fields = answer.fields
    status = fields["status"]
    if status == "surveyed":
        return RunSpec.from_json(fields["spec"]), Readings.from_json(fields["readings"])
    raise error_of(status, fields, answer.output, target)


def error_of(status: str, fields: Mapping[str, Any], output: str, target: str) -> MemfitError:
    """What a child's status means to the person who asked."""
    own = str(fields.get("output", ""))
    said = "\n".join(text for text in (output.rstrip(), own) if text)
    code = fields.get("code")
    if status == "never learned" or (status == "died" and code == 0):
        return NeverLearned(
            f"{target} ended without calling learn() of a stable-baselines3 model, which is what a "
            "plan stops at: check the script's arguments, or describe the run in a spec (run.toml)",
            output=output,
        )
    if status == "bad spec":
        return SpecError(
            f"{target}: {fields['reason']}. Mend that part of the spec, then plan again",
            output=output,
        )
    if status == "missing extra":
        return MissingExtra(
            f"{target} needs {fields['library']}, which is not installed for {sys.executable}: "
            f"pip install 'memfit[{fields['extra']}]'"
        )
    if status == "over limit":
        return NeverLearned(
            f"{target} used more than {fields['memory']} before it began to learn and was ended: "
            "plan it on a larger machine, or describe the run in a spec (run.toml)",
            output=output,
        )
    if status == "survey failed":
        return Unsupported(
            f"memfit could not survey {target}, though the script itself did nothing wrong: "
            "report the traceback above, or describe the run in a spec (run.toml)",
            output=said,
        )
    if "EOFError: EOF when reading a line" in own:
        return NeverLearned(
            f"{target} reads standard input, and a plan gives it none: "
            "pass its answers as arguments after --",
            output=said,
        )
    todo = "mend the error above, then plan again"
    if "PermissionError" in own:
        todo = "a plan lets it change no file; if that is why, let it write after learn()"
    how = _died(code) if status == "died" else "failed"
    return TargetFailed(f"{target} {how} before it began to learn: {todo}", output=said)


def _died(code: int | None) -> str:
    if code is None or code >= 0:
        return f"ended with exit code {code}"
    names = {number.value: number.name for number in signal.Signals}
    return f"was killed by {names.get(-code, f'signal {-code}')}"


def _known_knobs(knobs: Mapping[str, int], known: Mapping[str, int]) -> dict[str, int]:
    unknown = sorted(set(knobs) - set(known))
    if unknown:
        raise UsageError(
            f"this run has no setting {', '.join(unknown)}: it has {', '.join(sorted(known))}"
        )
    if bad := [name for name, value in knobs.items() if value < 1]:
        raise UsageError(f"{', '.join(bad)} must be at least 1: use --set {bad[0]}=1 or more")
    return dict(knobs)
