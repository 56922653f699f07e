"""Kinds of runs on which the forecast's constants were chosen."""

from __future__ import annotations

import math
from random import Random

from benchmarks.forecast.runs import (
    FILLING,
    LEAK,
    MIB,
    NEITHER,
    Maker,
    Run,
    Steps,
    begun,
    breathing,
    log_uniform,
    spikes,
    teeth,
)


def _leaking(run: Maker, since: float) -> float:
    """A leak at a rate; it adds enough to be told before the run ends."""
    draw, lasts = run.draw, run.length - since
    rate = log_uniform(draw, 0.02, 8) * MIB
    run.length = max(run.length, since + min(3000, 1.5 * 100 * MIB / rate))
    run.length = min(run.length, since + max(60, 6000 * MIB / rate))
    del lasts
    run.leak = lambda seconds: max(0.0, rate * (seconds - since))
    return rate


def leak(draw: Random) -> Run:
    run = begun(draw)
    _leaking(run, run.start)
    return run.make("leak", LEAK)


def leak_in_steps(draw: Random) -> Run:
    """At the end of each episode, for instance."""
    run = begun(draw)
    rate = _leaking(run, run.start)
    gap, at, marks = log_uniform(draw, 0.2, 15), run.start, []
    while (at := at + draw.expovariate(1 / gap)) < run.length:
        marks.append((at, rate * gap * draw.uniform(0.3, 1.7)))
    run.leak = Steps(marks)
    return run.make("leak in steps", LEAK)


def leak_that_begins_late(draw: Random) -> Run:
    run = begun(draw)
    _leaking(run, run.start + draw.uniform(30, 400))
    if draw.random() < 0.5:
        run.added.append(breathing(draw, run.start))
    return run.make("leak that begins late", LEAK)


def leak_below_updates(draw: Random) -> Run:
    run = begun(draw)
    _leaking(run, run.start)
    run.added.append(breathing(draw, run.start))
    return run.make("leak below updates", LEAK)


def leak_below_rollouts(draw: Random) -> Run:
    run = begun(draw)
    _leaking(run, run.start)
    run.added.append(teeth(draw, run.start))
    return run.make("leak below rollouts", LEAK)


def leak_with_spikes(draw: Random) -> Run:
    run = begun(draw)
    _leaking(run, run.start)
    run.added.append(spikes(draw, run.start, run.length))
    return run.make("leak with spikes", LEAK)


def filling(draw: Random) -> Run:
    run = begun(draw)
    run.size = log_uniform(draw, 80, 6000) * MIB
    rate = log_uniform(draw, 0.05, 20) * MIB
    run.filled = lambda seconds: min(run.size, max(0.0, rate * (seconds - run.start)))
    if draw.random() < 0.5:
        run.added.append(breathing(draw, run.start))
    return run.make("filling", FILLING)


def plateau(draw: Random) -> Run:
    return begun(draw).make("plateau", NEITHER)


def updates(draw: Random) -> Run:
    run = begun(draw)
    run.added.append(breathing(draw, run.start, longest=90))
    return run.make("updates", NEITHER)


def rollouts(draw: Random) -> Run:
    run = begun(draw)
    run.added.append(teeth(draw, run.start))
    if draw.random() < 0.5:
        run.added.append(breathing(draw, run.start))
    return run.make("rollouts", NEITHER)


def rare_spikes(draw: Random) -> Run:
    run = begun(draw)
    run.added.append(spikes(draw, run.start, run.length))
    return run.make("spikes", NEITHER)


def long_start(draw: Random) -> Run:
    """Imports of a minute on a busy machine, workers one after the other."""
    run = begun(draw, longest=80)
    workers, each = draw.randint(1, 16), draw.uniform(20, 150) * MIB
    begins = [run.start]
    while len(begins) < workers:
        begins.append(begins[-1] + draw.uniform(0.2, 8))
    run.processes = lambda seconds: 1 + bisect(begins, seconds)
    run.added.append(lambda seconds: sum(each * min(1, max(0, seconds - b) / 3) for b in begins))
    files = run.files
    run.files = lambda seconds: files(seconds) + each / 4 * bisect(begins, seconds - 2)
    run.start = begins[-1] + 3
    run.length += run.start
    return run.make("long start", NEITHER)


def bisect(begins: list[float], seconds: float) -> int:
    return sum(begin <= seconds for begin in begins)


def first_uses(draw: Random) -> Run:
    """The first update, the first evaluation, the first checkpoint: each stays."""
    run = begun(draw)
    at, marks = run.start, []
    for _ in range(draw.randint(1, 4)):
        at += log_uniform(draw, 2, 150)
        marks.append((at, log_uniform(draw, 5, 500) * MIB))
    run.added.append(Steps(marks))
    run.length = max(run.length, at + 100)
    return run.make("first uses", NEITHER)


def warming_up(draw: Random) -> Run:
    """Caches and pools that grow less and less."""
    run = begun(draw)
    size, slow = log_uniform(draw, 5, 300) * MIB, log_uniform(draw, 1, 15)
    run.added.append(lambda s: size * (1 - math.exp(-max(0.0, s - run.start) / slow)))
    if draw.random() < 0.5:
        run.added.append(breathing(draw, run.start))
    return run.make("warming up", NEITHER)


KINDS = (
    *(leak, leak_in_steps, leak_that_begins_late, leak_below_updates, leak_below_rollouts),
    *(leak_with_spikes, filling, plateau, updates, rollouts, rare_spikes, long_start),
    *(first_uses, warming_up),
)
