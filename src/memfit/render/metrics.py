"""Memory of runs in Prometheus's text form, live, and of a recording with its times (OpenMetrics).

Both name the same metrics in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from memfit.errors import visible
from memfit.model import Frame, Growth, Reading, Trace

_HELP = {
    "memfit_pss_bytes": "Memory of a process: its PSS, in which shared pages count in part",
    "memfit_threads": "Threads of a process",
    "memfit_total_pss_bytes": "Memory of a run: the sum of PSS over its processes",
    "memfit_peak_pss_bytes": "The highest memory of a run so far",
    "memfit_limit_bytes": "What a run may hold, by what says so",
    "memfit_processes": "Processes of a run",
    "memfit_run_seconds": "Seconds from the start of a run to its last reading",
    "memfit_component_bytes": "Memory of a run by the first word of its rows, read seldom",
    "memfit_holder_bytes": "Memory by holder, as the run itself told last",
    "memfit_growth": "How memory goes on: 1 for what holds",
    "memfit_growth_bytes_per_second": "How quickly memory grows",
    "memfit_forecast_limit_seconds": "Seconds until the limit is reached; +Inf if not foreseen",
    "memfit_forecast_limit_low_seconds": "The same, at the earliest (19 of 20 cases)",
    "memfit_target_met": "Whether a target is met",
    "memfit_ended": "Whether a run has ended",
}
Labels = tuple[tuple[str, str], ...]


@dataclass(kw_only=True)
class _Families:
    """Samples by metric, in the order in which they were added."""

    samples: dict[str, list[str]] = field(default_factory=dict)

    def add(self, name: str, labels: Labels, value: float, at: float | None = None) -> None:
        told = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
        time = "" if at is None else f" {at:.3f}"
        self.samples.setdefault(name, []).append(f"{name}{{{told}}} {_number(value)}{time}")

    def lines(self) -> Iterable[str]:
        for name, samples in self.samples.items():
            yield f"# HELP {name} {_HELP[name]}"
            yield f"# TYPE {name} gauge"
            yield from samples


def live_metrics(frames: Mapping[str, Frame]) -> str:
    """What `/metrics` answers: every run as it was read last."""
    found = _Families()
    for run, frame in frames.items():
        _add_frame(found, frame, (("run", run),))
    return "".join(f"{line}\n" for line in found.lines())


def _add_frame(found: _Families, frame: Frame, run: Labels) -> None:
    for process in frame.processes if not frame.ended else ():
        role = "worker" if process.depth else "main"
        own = (("role", role), ("pid", str(process.pid)), *run)
        found.add("memfit_pss_bytes", own, process.bytes)
        if process.threads:
            found.add("memfit_threads", own, process.threads)
    found.add("memfit_total_pss_bytes", run, frame.bytes)
    found.add("memfit_peak_pss_bytes", run, frame.peak.bytes)
    found.add("memfit_limit_bytes", (("source", frame.limit.source), *run), frame.limit.bytes)
    found.add("memfit_processes", run, 0 if frame.ended else len(frame.processes))
    if frame.readings:
        found.add("memfit_run_seconds", run, frame.readings[-1].seconds)
    for name, amount in frame.part_bytes.items():
        found.add("memfit_component_bytes", (("component", name), *run), amount)
    for name, amount in frame.holders:
        found.add("memfit_holder_bytes", (("holder", name), *run), amount)
    for growth in Growth:
        state = (("state", growth.value), *run)
        found.add("memfit_growth", state, float(frame.forecast.growth is growth))
    if frame.forecast.growth is not Growth.UNKNOWN:
        found.add("memfit_growth_bytes_per_second", run, frame.forecast.bytes_per_second)
        until, low = frame.seconds_to_limit, frame.seconds_to_limit_at_least
        found.add("memfit_forecast_limit_seconds", run, math.inf if until is None else until)
        found.add("memfit_forecast_limit_low_seconds", run, math.inf if low is None else low)
    for target in frame.targets:
        found.add("memfit_target_met", (("target", target.name), *run), float(target.met))
    found.add("memfit_ended", run, float(frame.ended))


def trace_openmetrics(trace: Trace, run: str) -> str:
    """A recording as OpenMetrics with the times of its readings, to be put into a database."""
    found, label = _Families(), (("run", run),)
    for member in trace.members:
        role = "main" if member.pid == trace.pid else "worker"
        own = (("role", role), ("pid", str(member.pid)), *label)
        for at, reading in _timed(trace, member.readings):
            found.add("memfit_pss_bytes", own, reading.bytes, at)
    for at, reading in _timed(trace, trace.readings):
        found.add("memfit_total_pss_bytes", label, reading.bytes, at)
        found.add("memfit_processes", label, reading.processes, at)
    if trace.limit is not None and trace.readings:
        at = trace.started + trace.seconds
        limit = (("source", trace.limit.source), *label)
        found.add("memfit_limit_bytes", limit, trace.limit.bytes, at)
    return "".join(f"{line}\n" for line in [*found.lines(), "# EOF"])


def _timed(trace: Trace, readings: Iterable[Reading]) -> Iterable[tuple[float, Reading]]:
    """Readings by their time, of which a database keeps milliseconds: the highest of each."""
    found: dict[float, Reading] = {}
    for reading in readings:
        at = round(trace.started + reading.seconds, 3)
        if at not in found or reading.bytes > found[at].bytes:
            found[at] = reading
    return found.items()


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(round(value, 3))


def _escaped(text: str) -> str:
    return visible(text).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
