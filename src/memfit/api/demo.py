"""`demo`: plans beside what the same runs then really use."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from memfit.api.plan import ROOM, Progress, error_of, job_of, plan, say
from memfit.errors import TargetFailed, UsageError
from memfit.model import Compared, Demo, SystemDemo, SystemRun


def demo(*, updates: int = 4, progress: Progress | None = None) -> Demo:
    """Plan a real training, run it for a few updates, and put predicted beside measured."""
    from memfit.measure.children import sandbox
    from memfit.measure.kernel import limits

    started = time.monotonic()
    script = Path(__file__).parents[1] / "systems" / "catch.py"
    planned = plan(script, progress=progress)
    say(progress, f"running it for {updates} real updates")
    answer = sandbox.run(
        {**job_of(script, ()), "observe": updates},
        timeout=120.0,
        memory=int(limits.memory_limit().bytes * ROOM),
        progress=progress,
    )
    if answer.fields["status"] != "observed":
        raise error_of(answer.fields["status"], answer.fields, answer.output, str(script))
    seen, phases = answer.fields, planned.ledger.phase_bytes
    rows = {c.name: planned.ledger.bytes_of(c) for c in planned.ledger.components}
    measured = seen["rows"]
    compared = [
        Compared(name=name, predicted=rows[name], measured=measured[name])
        for name in rows
        if name in measured
    ]
    known = {row.name for row in compared}
    at_peak = [c for c in planned.ledger.components if c.alive_in(planned.ledger.peak.moment)]
    rest = sum(rows[c.name] for c in at_peak if c.name not in known)
    named = sum(row.measured for row in compared)
    compared.append(
        Compared(
            name="all other rows at the peak",
            predicted=rest,
            measured=seen["peaks"]["update"] - named,
        )
    )
    return Demo(
        plan=planned,
        phases=tuple(
            Compared(name=name, predicted=phases[name], measured=seen["peaks"][name])
            for name in ("build", "rollout", "update")
        ),
        rows=tuple(compared),
        peak=Compared(
            name="peak, seen from outside",
            predicted=planned.peak_bytes,
            measured=answer.peak_bytes,
        ),
        updates=updates,
        seconds=time.monotonic() - started,
    )


@dataclass(frozen=True, kw_only=True)
class _Variant:
    """One way of a reference system to train: its spec, its command, and two sizes to show.

    `{value}` in the options is the size; `knobs` are other settings of the spec that they change.
    """

    name: str
    spec: str
    knob: str
    options: Sequence[str]
    values: Sequence[int]
    knobs: Mapping[str, int] = field(default_factory=dict)


# The smallest sizes at which what one more adds stands out.
_SYSTEMS = {
    "drone": (
        _Variant(
            name="as described",
            spec="drone.toml",
            knob="agents",
            options=("--agents", "{value}", "--as-described", "--iterations", "2"),
            values=(20, 60),
        ),
        _Variant(
            name="made to fit",
            spec="drone-fit.toml",
            knob="agents",
            options=(
                *("--agents", "{value}", "--iterations", "2"),
                *("--act-every", "10", "--max-minibatches", "20"),
            ),
            values=(2_000, 20_000),
        ),
    ),
    "fighter": (
        _Variant(
            name="as described",
            spec="fighter.toml",
            knob="n_steps",
            options=(
                *("--n-steps", "{value}", "--as-described", "--batch-size", "64"),
                *("--epochs", "1", "--iterations", "2", "--quiet"),
            ),
            values=(64, 256),
            knobs={"batch_size": 64},
        ),
        _Variant(
            name="made to fit",
            spec="fighter-fit.toml",
            knob="n_steps",
            options=(
                *("--n-steps", "{value}", "--batch-size", "64"),
                *("--epochs", "1", "--iterations", "2", "--quiet"),
            ),
            values=(64, 512),
        ),
    ),
    "ninja": (
        _Variant(
            name="as described",
            spec="ninja.toml",
            knob="n_envs",
            options=(
                *("--n-envs", "{value}", "--as-described"),
                *("--steps", "1024", "--epochs", "1", "--quiet"),
            ),
            values=(2, 8),
        ),
        _Variant(
            name="made to fit",
            spec="ninja-fit.toml",
            knob="n_envs",
            # Two rollouts of the larger one: malloc keeps what the first update has freed.
            options=("--n-envs", "{value}", "--steps", "4096", "--epochs", "1", "--quiet"),
            values=(8, 32),
        ),
    ),
    "trader": (
        _Variant(
            name="as described",
            spec="trader.toml",
            knob="steps",
            options=(
                *("--steps", "{value}", "--as-described", "--trials", "0", "--workers", "0"),
                *("--iterations", "2", "--epochs", "2", "--quiet"),
            ),
            values=(4_096, 16_384),
        ),
        _Variant(
            name="made to fit",
            spec="trader-fit.toml",
            knob="steps",
            options=(
                *("--steps", "{value}", "--trials", "0", "--workers", "0"),
                *("--iterations", "2", "--epochs", "1", "--quiet"),
            ),
            values=(4_096, 65_536),
        ),
    ),
}


def demo_system(system: str, *, progress: Progress | None = None) -> SystemDemo:
    """Plan a reference system from its spec, run it at the same sizes, and compare."""
    from memfit.analyses.line import fit

    if system not in _SYSTEMS:
        raise UsageError(f"there is no system {system!r}: give one of {', '.join(_SYSTEMS)}")
    started = time.monotonic()
    runs: list[SystemRun] = []
    lines = {}
    for variant in _SYSTEMS[system]:
        own = [_system_run(system, variant, value, progress) for value in variant.values]
        runs += own
        lines[variant.name] = (
            fit([(run.value, run.predicted) for run in own]),
            fit([(run.value, run.measured) for run in own]),
        )
    return SystemDemo(
        system=system, runs=tuple(runs), lines=lines, seconds=time.monotonic() - started
    )


def _system_run(system: str, variant: _Variant, value: int, progress: Progress | None) -> SystemRun:
    from memfit.measure.children.measured_command import measure
    from memfit.measure.kernel import limits

    spec = Path(__file__).parents[1] / "specs" / variant.spec
    options = [word.replace("{value}", str(value)) for word in variant.options]
    say(progress, f"planning {system} {variant.name} with {variant.knob} {value:,}")
    predicted = plan(spec, knobs={**variant.knobs, variant.knob: value})
    say(progress, f"running it: {' '.join(options)}")
    done = measure(
        [sys.executable, "-m", f"memfit.systems.{system}", "--device", "cpu", *options],
        memory=int(limits.memory_limit().bytes * ROOM),
        timeout=300.0,
    )
    if done.exit_code:
        raise TargetFailed(
            f"the {system} system ended with exit code {done.exit_code}: see its output above",
            output=done.output,
        )
    return SystemRun(
        training=variant.name,
        knob=variant.knob,
        value=value,
        predicted=predicted.peak_bytes,
        upper=predicted.upper_bytes,
        measured=done.peak_bytes,
        seconds=done.seconds,
    )
