"""`sweep`: run a program or a target at each value of a setting and measure its peaks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from memfit.api.engines import nodes_of, points_on
from memfit.api.sweep_runs import runner_of
from memfit.errors import UsageError
from memfit.model import Outcome, Point, Sweep, SweepStep
from memfit.model.json_loader import from_json, to_json

if TYPE_CHECKING:
    from memfit.analyses.capacity import Hardware
    from memfit.integrations.ray.remote_runs import Nodes
    from memfit.model import Ledger, Limit

Progress = Callable[[str], None]
Watching = Callable[[SweepStep], None]

_LARGEST = 2**40
_KEPT = 3  # of runs that are kept; another where points have other fields


def sweep(
    command: Sequence[str] = (),
    *,
    over: str,
    target: str | Path | None = None,
    limit: int | None = None,
    on: Sequence[str] = (),
    timeout: float = 600.0,
    fresh: bool = False,
    network: bool = False,
    engine: str = "",
    progress: Progress | None = None,
    watching: Watching | None = None,
) -> Sweep:
    """Measure a peak at each value of a setting, up to one run that does not fit.

    `over` is `agents=100,1000` or `agents=1..20000`, which doubles. With a command alone, the value
    takes the place of `{agents}` in it. A `target` (script, spec or factory) is built with each
    value and learns for two updates in a child; a command beside it is a script's own arguments,
    or, beside a spec, the program that is measured while the spec is planned. Runs that an earlier
    sweep finished before it was killed are not run again, unless `fresh`. A target has no network,
    unless `network`. With the `engine` "ray", values are run on the nodes of a cluster, side by
    side where these have room.
    """
    from memfit.analyses.capacity import default_hardware, parse_hardware
    from memfit.analyses.line import fit, largest
    from memfit.measure.children.user_cache import SweepCache
    from memfit.measure.kernel.proc import outside_note

    started = time.monotonic()
    knob, values = parse_over(over)
    runner = runner_of(target, command, knob, values, network=network)
    hardware = [parse_hardware(name) for name in on] or default_hardware()
    with nodes_of(engine, limit) as nodes:
        used = _limit(limit, nodes)
        settings = {"knob": knob, "limit": used.bytes, "timeout": timeout, "schema": _KEPT}
        kept = SweepCache({**runner.facts, **settings})
        if fresh:
            kept.forget()
        known = {point.value: point for point in (from_json(Point, told) for told in kept)}
        if progress is not None and known:
            again = f"{len(known)} {'run' if len(known) == 1 else 'runs'}"
            progress(f"going on after {again} of an earlier sweep (--fresh begins anew)")
        tell: Watching = watching or (lambda step: None)
        if nodes is not None:
            for point in points_on(nodes, runner, values, known, timeout):
                kept.add(to_json(point))
                known[point.value] = point
                tell(_ended(_step(len(known), len(values), knob, point.value), point))
        points: list[Point] = []
        for number, value in enumerate(values, 1):
            step = _step(number, len(values), knob, value)
            found = known.get(value)
            if found is None:
                tell(step)
                alive = _telling(tell, step)
                found = runner.run(value, memory=used.bytes, timeout=timeout, alive=alive)
                kept.add(to_json(found))
            points.append(found)
            if nodes is None:
                tell(_ended(step, found))
            if found.outcome is not Outcome.DONE:
                break
    line = fit([(p.value, p.peak_bytes) for p in points if p.outcome is Outcome.DONE])
    ledger, notes = runner.plan(progress)
    told = dict.fromkeys(note for point in points for note in point.notes)
    shared = max(points, key=lambda p: p.outside_bytes / max(1, p.peak_bytes))
    result = Sweep(
        command=tuple(command),
        target=str(target or ""),
        knob=knob,
        limit_bytes=used.bytes,
        limit_source=used.source,
        points=tuple(points if ledger is None else _planned(points, knob, ledger)),
        line=line,
        largest={h.name: (h.bytes, largest(line, h.bytes)) for h in hardware} if line else {},
        planned=_planned_largest(ledger, knob, hardware),
        network=network,
        notes=(*notes, *told, *outside_note(shared.outside_bytes, shared.peak_bytes)),
        seconds=time.monotonic() - started,
    )
    kept.forget()
    return result


def _limit(limit: int | None, nodes: Nodes | None) -> Limit:
    """The least of what a run may take where it is made, and what was given."""
    from memfit.measure.children import sandbox
    from memfit.measure.kernel import limits
    from memfit.model import Limit

    if nodes is not None:
        used = Limit(bytes=nodes.memory, source=nodes.source)
    else:
        source = limits.memory_limit().source
        used = Limit(bytes=sandbox.room(), source=f"{sandbox.ROOM:.0%} of {source}")
    return min(Limit.given(limit) or used, used, key=lambda each: each.bytes)


def _step(number: int, of: int, knob: str, value: int) -> SweepStep:
    return SweepStep(number=number, of=of, knob=knob, value=value, peak_bytes=0, seconds=0.0)


def _ended(step: SweepStep, point: Point) -> SweepStep:
    held, seconds = point.peak_bytes, point.seconds
    return replace(step, peak_bytes=held, seconds=seconds, outcome=point.outcome)


def _telling(tell: Watching, step: SweepStep) -> Callable[[int], None]:
    """A function that tells how a run goes on, with the most that it has held so far."""
    started = time.monotonic()
    return lambda peak: tell(replace(step, peak_bytes=peak, seconds=time.monotonic() - started))


def _planned(points: Sequence[Point], knob: str, ledger: Ledger) -> Iterator[Point]:
    for point in points:
        yield replace(point, planned_bytes=ledger.at(**{knob: point.value}).peak.bytes)


def _planned_largest(
    ledger: Ledger | None, knob: str, hardware: Sequence[Hardware]
) -> dict[str, int | None]:
    from memfit.analyses.capacity import capacity

    if ledger is None:
        return {}
    found = {h.name: capacity(ledger, h, [knob]).largest for h in hardware}
    return {name: largest.get(knob, 0) for name, largest in found.items()}


def parse_over(text: str) -> tuple[str, list[int]]:
    """`agents=100,1000` or `agents=1..4096` as a name and its values, smallest first."""
    name, equals, rest = text.partition("=")
    name = name.strip()
    low, dots, high = rest.partition("..")
    try:
        values = _doubled(int(low), int(high)) if dots else [int(v) for v in rest.split(",")]
    except ValueError:
        values = []
    if not equals or not name.isidentifier() or not values or min(values) < 1:
        raise UsageError(
            f"--over {text}: write a name and whole numbers above zero, such as agents=100,1000 "
            "or agents=1..20000"
        )
    if max(values) > _LARGEST:
        raise UsageError(f"--over {text}: {max(values):,} is beyond anything: give less")
    return name, sorted(set(values))


def _doubled(low: int, high: int) -> list[int]:
    if low < 1 or high < low:
        return []
    values = [low]
    while values[-1] * 2 < high:
        values.append(values[-1] * 2)
    return values if values[-1] == high else [*values, high]
