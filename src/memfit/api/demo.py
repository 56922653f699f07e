"""`demo`: plans beside what the same runs then really use."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from tempfile import TemporaryDirectory

from memfit.api.child_errors import error_of
from memfit.api.optimize import optimize
from memfit.api.plan import Progress, plan, say
from memfit.api.run import run
from memfit.errors import TargetFailed, UsageError
from memfit.model import Compared, Demo, DemoVariant, RecordedDemo, SystemDemo, SystemRun, Trace
from memfit.model.job import Look, Status
from memfit.units import format_bytes

_TELL_SECONDS = 5.0
_RECORDED_STEPS = 4096  # two rollouts and their updates: the second has the peak
_RECORDED = (
    *(sys.executable, "-m", "memfit.systems.catch", "--quiet", "--recorded"),
    *("--timesteps", str(_RECORDED_STEPS)),
)
_CHANGES = (
    "rollout_buffer_class=memfit.dropins.WindowRolloutBuffer: each frame once",
    "memfit.dropins.MicroBatchPPO, micro_batch_size=64: the same gradient, in pieces",
)
RUN_SECONDS = 900.0  # of one plan, and of one run, also on a machine that is busy


def demo(*, updates: int = 4, progress: Progress | None = None) -> Demo:
    """Plan a real training, run it for a few updates, and put predicted beside measured."""
    from memfit.measure.children import sandbox
    from memfit.sources.target import job_of

    started = time.monotonic()
    package = Path(__file__).parents[1]
    say(progress, "planning the drone system at the size that it is described with")
    described = plan(package / "specs" / "drone.toml", per="agents", timeout=RUN_SECONDS)
    script = package / "systems" / "catch.py"
    say(progress, "planning a small training of stable-baselines3")
    planned = plan(script, timeout=RUN_SECONDS, progress=progress)
    say(progress, f"running it for {updates} real updates")
    job = replace(job_of(script, ()), look=Look.OBSERVE, updates=updates)
    ended = sandbox.run(job, timeout=RUN_SECONDS, memory=sandbox.room())
    seen, phases = ended.answer, planned.ledger.phase_bytes
    if seen.status is not Status.OBSERVED:
        raise error_of(ended, str(script))
    ledger = planned.ledger
    compared = [
        Compared(name=c.name, predicted=ledger.bytes_of(c), measured=seen.rows[c.name])
        for c in ledger.components
        if c.name in seen.rows
    ]
    at_peak = [c for c in ledger.components if c.alive_in(ledger.peak.moment)]
    rest = sum(ledger.bytes_of(c) for c in at_peak if c.name not in seen.rows)
    named = sum(row.measured for row in compared)
    compared.append(
        Compared(
            name="all other rows at the peak",
            predicted=rest,
            measured=seen.peaks["update"] - named,
        )
    )
    recorded = _recorded(progress)
    say(progress, "making each fix of it in a child, to see what it saves")
    optimized = optimize(
        script, safe_only=True, quick=True, repeats=1, timeout=RUN_SECONDS, progress=progress
    )
    return Demo(
        described=described,
        plan=planned,
        phases=tuple(
            Compared(name=name, predicted=phases[name], measured=seen.peaks[name])
            for name in ("build", "rollout", "update")
        ),
        rows=tuple(compared),
        peak=Compared(
            name="peak, seen from outside",
            predicted=planned.peak_bytes,
            measured=ended.peak_bytes,
        ),
        recorded=recorded,
        optimized=optimized,
        updates=updates,
        seconds=time.monotonic() - started,
    )


def _recorded(progress: Progress | None) -> RecordedDemo:
    """The same training in a process of its own, below `memfit run`: as it is, and made to fit."""
    from memfit.api.compare import outlook

    with TemporaryDirectory(prefix="memfit-") as folder:
        traces: list[Trace] = []
        for options, what in (([], "as it is"), (["--fit"], "made to fit")):
            say(progress, f"recording the training {what}, {_RECORDED_STEPS:,} steps")
            place = Path(folder) / f"{len(traces)}.db"
            trace = run([*_RECORDED, *options], record=place)
            if trace.exit_code:
                raise TargetFailed(
                    f"the demonstration's training ended with exit code {trace.exit_code}: see its "
                    "output above"
                )
            traces.append(trace)
    before, after = traces
    return RecordedDemo(trace=before, forecast=outlook(before), changes=_CHANGES, after=after)


def demonstrations() -> dict[str, tuple[DemoVariant, ...]]:
    """What each package below `memfit.systems` declares to show of itself, by its name."""
    from memfit import systems

    return {
        package.name: import_module(f"memfit.systems.{package.name}.demonstration").VARIANTS
        for package in iter_modules(systems.__path__)
        if package.ispkg
    }


def system_envs() -> dict[str, str]:
    """The environment of each system, by the system's name, as `package.module:class`."""
    from memfit import systems

    return {
        package.name: import_module(f"memfit.systems.{package.name}.demonstration").ENV
        for package in iter_modules(systems.__path__)
        if package.ispkg
    }


def demo_system(system: str, *, progress: Progress | None = None) -> SystemDemo:
    """Plan a reference system from its spec, run it at the same sizes, and compare."""
    from memfit.analyses.line import fit

    known = demonstrations()
    if system not in known:
        raise UsageError(f"there is no system {system!r}: give one of {', '.join(known)}")
    started = time.monotonic()
    runs: list[SystemRun] = []
    lines = {}
    for variant in known[system]:
        own = [system_run(system, variant, value, progress) for value in variant.values]
        runs += own
        lines[variant.name] = (
            fit([(run.value, run.predicted) for run in own]),
            fit([(run.value, run.measured) for run in own]),
        )
    return SystemDemo(
        system=system, runs=tuple(runs), lines=lines, seconds=time.monotonic() - started
    )


def _telling(progress: Progress | None) -> Callable[[int], None]:
    """A function that says now and then how far a run is: it takes a while."""
    started = last = time.monotonic()

    def tell(peak: int) -> None:
        nonlocal last
        if time.monotonic() - last >= _TELL_SECONDS:
            last = time.monotonic()
            say(progress, f"running for {last - started:.0f} s, at most {format_bytes(peak)}")

    return tell


def system_run(
    system: str, variant: DemoVariant, value: int, progress: Progress | None
) -> SystemRun:
    """Plan and run a system at one size."""
    from memfit.measure.children import sandbox
    from memfit.measure.children.measured_command import measure

    spec = Path(__file__).parents[1] / "specs" / variant.spec
    options = variant.options.replace("{value}", str(value)).split()
    say(progress, f"planning {system} {variant.name} with {variant.knob} {value:,}")
    knobs = {**variant.knobs, variant.knob: value}
    predicted = plan(spec, knobs=knobs, timeout=RUN_SECONDS, progress=progress)
    say(progress, f"running it: {' '.join(options)}")
    done = measure(
        [sys.executable, "-m", f"memfit.systems.{system}", "--device", "cpu", *options],
        memory=sandbox.room(),
        timeout=RUN_SECONDS,
        alive=_telling(progress),
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
