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


def leak_after_first_updates(draw: Random) -> Run:
    """The first updates come while it is still starting, each of seconds on a busy machine."""
    run = begun(draw)
    _leaking(run, run.start)
    at, marks = run.start - draw.uniform(0, 5), []
    height = log_uniform(draw, 10, 200) * MIB
    while at < run.length:
        lasts = draw.uniform(0.5, 6)
        marks += [(at, height), (at + lasts, -height * draw.uniform(0.8, 1))]
        at += lasts + draw.uniform(3, 15)
    run.added.append(Steps(marks[: 2 * draw.randint(2, 400)]))
    return run.make("leak after first updates", LEAK)


def leak_with_stalls(draw: Random) -> Run:
    """On a machine that others use: nothing goes on for seconds, then more at once."""
    run = begun(draw)
    rate = _leaking(run, run.start)
    marks, at = [], run.start
    while at < run.length:
        works, rests = draw.uniform(1, 20), draw.uniform(0.5, 12)
        marks += [(at + i * works / 40, rate * (works + rests) / 40) for i in range(40)]
        at += works + rests
    run.leak = Steps(marks)
    return run.make("leak with stalls", LEAK)


def slow_imports(draw: Random) -> Run:
    """Workers that import at the same time on a machine that others use: much else than files."""
    run = begun(draw)
    workers, each, lasts = draw.randint(2, 12), draw.uniform(50, 200) * MIB, draw.uniform(15, 90)
    begins = [run.start + draw.uniform(0, 20) for _ in range(workers)]
    paces = [lasts * draw.uniform(0.7, 1.3) for _ in range(workers)]
    pages = [draw.uniform(0.5, 1) * 70 * MIB for _ in range(workers)]
    # What a library maps is read at once; its modules take their time after that.
    loads = [
        (begins[i] + paces[i] * draw.random(), pages[i] / 8)
        for i in range(workers)
        for _ in range(8)
    ]
    files, mapped = run.files, Steps(loads)
    run.files = lambda seconds: files(seconds) + mapped(seconds)
    run.processes = lambda seconds: 1 + bisect(begins, seconds)
    run.added.append(
        lambda s: sum(each * min(1, max(0, s - b) / p) for b, p in zip(begins, paces, strict=True))
    )
    run.start = max(b + p for b, p in zip(begins, paces, strict=True))
    run.length += run.start
    return run.make("slow imports", NEITHER)


def caches_that_saturate(draw: Random) -> Run:
    """Several caches, each of which comes to its size ever more slowly."""
    run = begun(draw)
    caches = [
        (log_uniform(draw, 5, 300) * MIB, log_uniform(draw, 3, 60))
        for _ in range(draw.randint(1, 4))
    ]
    run.length = max(run.length, run.start + 10 * max(slow for _, slow in caches))
    run.added.append(
        lambda seconds: sum(
            size * -math.expm1(-max(0.0, seconds - run.start) / slow) for size, slow in caches
        )
    )
    return run.make("caches that saturate", NEITHER)


def growth_that_slows(draw: Random) -> Run:
    """Goes with the root or the logarithm of time: new states, names or shapes become rare."""
    run = begun(draw)
    run.length = max(run.length, run.start + 240)
    lasts, size = run.length - run.start, log_uniform(draw, 10, 600) * MIB
    soon, root = log_uniform(draw, 1, 40), draw.random() < 0.5

    def grown(seconds: float) -> float:
        since = max(0.0, seconds - run.start)
        if root:
            return size * math.sqrt(since / lasts)
        return size * math.log1p(since / soon) / math.log1p(lasts / soon)

    run.added.append(grown)
    if draw.random() < 0.5:
        run.added.append(breathing(draw, run.start))
    return run.make("growth that slows", NEITHER)


def leak_beside_long_updates(draw: Random) -> Run:
    """A small process on a machine that others use: updates of many seconds, and a small leak."""
    run = begun(draw)
    rate = log_uniform(draw, 0.3, 4) * MIB
    run.length = run.start + min(1500, max(120, 400 * MIB / rate))
    run.leak = lambda seconds: max(0.0, rate * (seconds - run.start))
    at, marks, height = run.start, [], draw.uniform(0.1, 0.3) * 200 * MIB
    while at < run.length:
        at += draw.uniform(5, 12)
        lasts = draw.uniform(2, 6)
        marks += [(at, height), (at + lasts, -height)]
        at += lasts
    run.added.append(Steps(marks))
    return run.make("leak beside long updates", LEAK)


def states_that_become_rare(draw: Random) -> Run:
    """A table of the states that were met: new ones become rare; it doubles where it is full."""
    run = begun(draw)
    power, each = draw.uniform(0.3, 0.75), log_uniform(draw, 10, 500) * MIB
    run.length = max(run.length, run.start + 200)
    first = 2.0 ** -draw.randint(4, 10)

    def held(seconds: float) -> float:
        met: float = (max(0.0, seconds - run.start) / (run.length - run.start)) ** power
        doubled: float = 2.0 ** math.ceil(math.log2(met / first)) * first if met > first else first
        return each * (met + 0.25 * doubled)

    run.added.append(held)
    return run.make("states that become rare", NEITHER)


def buffers_of_the_longest(draw: Random) -> Run:
    """Buffers that are kept as large as the longest episode so far."""
    run = begun(draw)
    size, mean, at = log_uniform(draw, 5, 200) * MIB, log_uniform(draw, 1, 20), run.start
    longest, marks = 0.0, []
    while at < run.length:
        at += mean * draw.uniform(0.5, 1.5)
        length = draw.lognormvariate(0, 0.8)
        if length > longest:
            marks.append((at, size * (length - longest)))
            longest = length
    run.added.append(Steps(marks))
    if draw.random() < 0.5:
        run.added.append(breathing(draw, run.start))
    return run.make("buffers of the longest", NEITHER)


def caches_of_workers(draw: Random) -> Run:
    """Each worker warms its own cache up; one begins some seconds after the other."""
    run = begun(draw)
    begins = [run.start + draw.uniform(0, 30) for _ in range(draw.randint(2, 8))]
    each, slow = log_uniform(draw, 10, 120) * MIB, log_uniform(draw, 5, 50)
    run.processes = lambda seconds: 1 + len(begins)
    run.added.append(
        lambda seconds: sum(each * -math.expm1(-max(0.0, seconds - b) / slow) for b in begins)
    )
    run.length = max(run.length, run.start + 30 + 10 * slow)
    return run.make("caches of workers", NEITHER)


def leak_beside_a_cache(draw: Random) -> Run:
    """A leak, and a cache that warms up at the same time."""
    run = begun(draw)
    rate, start = log_uniform(draw, 0.1, 4) * MIB, run.start
    run.length = start + min(2000, max(180, 400 * MIB / rate))
    run.leak = lambda seconds: max(0.0, rate * (seconds - start))
    size, slow = log_uniform(draw, 10, 200) * MIB, log_uniform(draw, 3, 60)
    run.added.append(lambda seconds: size * -math.expm1(-max(0.0, seconds - start) / slow))
    run.added.append(breathing(draw, start, longest=15))
    return run.make("leak beside a cache", LEAK)


def leak_of_a_run_that_slows(draw: Random) -> Run:
    """Every step leaves as much, and steps come slower: to a half of the first pace, or more."""
    run = begun(draw)
    rate, start = log_uniform(draw, 0.1, 6) * MIB, run.start
    least, slow = draw.uniform(0.5, 0.95), log_uniform(draw, 20, 400)
    run.length = start + min(2000, max(180, 400 * MIB / rate))

    def leaked(seconds: float) -> float:
        since = max(0.0, seconds - start)
        return rate * (least * since + (1 - least) * slow * -math.expm1(-since / slow))

    run.leak = leaked
    return run.make("leak of a run that slows", LEAK)


KINDS = (
    *(leak, leak_in_steps, leak_that_begins_late, leak_below_updates, leak_below_rollouts),
    *(leak_with_spikes, filling, plateau, updates, rollouts, rare_spikes, long_start),
    *(first_uses, warming_up, leak_after_first_updates, leak_with_stalls, slow_imports),
    *(caches_that_saturate, growth_that_slows, leak_beside_long_updates),
    *(states_that_become_rare, buffers_of_the_longest, caches_of_workers),
    *(leak_beside_a_cache, leak_of_a_run_that_slows),
)
