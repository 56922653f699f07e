"""Kinds of runs for the report alone: written when the constants stood, never to choose one on."""

from __future__ import annotations

import math
from random import Random

from benchmarks.forecast.runs import (
    FILLING,
    LEAK,
    MIB,
    NEITHER,
    Amount,
    Maker,
    Run,
    Steps,
    begun,
    breathing,
    log_uniform,
    teeth,
)


def _leaking(draw: Random, low: float, high: float) -> tuple[Maker, float]:
    """A run that is long enough to leak 400 MiB at some rate, as far as 2000 s allow."""
    run = begun(draw)
    rate = log_uniform(draw, low, high) * MIB
    run.length = run.start + min(2000, max(150, 400 * MIB / rate))
    return run, rate


def leak_of_a_table_that_doubles(draw: Random) -> Run:
    """A dictionary that is never cleared: its entries at one pace, its table twice as large."""
    run, rate = _leaking(draw, 0.1, 5)
    first = draw.uniform(1, 8) * MIB

    def leaked(seconds: float) -> float:
        kept = rate * max(0.0, seconds - run.start)
        table = first * 2 ** math.ceil(math.log2(kept / first)) if kept > first else first
        return kept + 0.2 * (table - first)

    run.leak = leaked
    return run.make("leak of a table that doubles", LEAK)


def leak_of_evaluations(draw: Random) -> Run:
    """Only evaluations leak, and they come at equal distances."""
    run, rate = _leaking(draw, 0.1, 3)
    every, lasts = draw.uniform(10, 60), draw.uniform(2, 10)
    height = log_uniform(draw, 5, 100) * MIB

    def leaked(seconds: float) -> float:
        turns, since = divmod(max(0.0, seconds - run.start), every)
        return rate * every * (turns + min(1.0, since / lasts))

    run.leak = leaked
    run.added.append(lambda s: height if s > run.start and (s - run.start) % every < lasts else 0.0)
    return run.make("leak of evaluations", LEAK)


def leak_of_two_workers(draw: Random) -> Run:
    """Two of several workers leak, each at a pace of its own, and begin at different times."""
    run, rate = _leaking(draw, 0.1, 3)
    later = run.start + draw.uniform(0, 40)
    run.processes = lambda seconds: 6
    run.leak = lambda s: rate * max(0.0, s - run.start) + rate / 2 * max(0.0, s - later)
    run.added.append(breathing(draw, run.start, longest=10))
    return run.make("leak of two workers", LEAK)


def leak_with_collections(draw: Random) -> Run:
    """A leak below garbage: small teeth, and every few of them a large one."""
    run, rate = _leaking(draw, 0.2, 6)
    run.leak = lambda seconds: rate * max(0.0, seconds - run.start)
    run.added.append(_nested_teeth(draw, run.start))
    return run.make("leak with collections", LEAK)


def leak_after_a_pause(draw: Random) -> Run:
    """Warms up, waits for data or a lock, then trains and leaks."""
    run = begun(draw)
    rate, begins = log_uniform(draw, 0.1, 6) * MIB, run.start + draw.uniform(20, 200)
    run.length = begins + min(2000, max(150, 400 * MIB / rate))
    run.leak = lambda seconds: max(0.0, rate * (seconds - begins))
    run.added.append(breathing(draw, begins, longest=20))
    return run.make("leak after a pause", LEAK)


def leak_of_shrinking_episodes(draw: Random) -> Run:
    """What an episode leaves stays the same, and episodes get longer: down to 60 % of the pace."""
    run, rate = _leaking(draw, 0.2, 5)
    at, gap, longer = run.start, log_uniform(draw, 0.3, 4), draw.uniform(1.0, 1.6)
    marks, lasts = [], run.length - run.start
    while at < run.length:
        at += gap * (1 + (longer - 1) * (at - run.start) / lasts)
        marks.append((at, rate * gap))
    run.leak = Steps(marks)
    return run.make("leak of episodes that get longer", LEAK)


def replay_beside_rollouts(draw: Random) -> Run:
    """A replay that is filled in bursts, one after each rollout."""
    run = begun(draw)
    run.size, rate = log_uniform(draw, 150, 4000) * MIB, log_uniform(draw, 0.2, 10) * MIB
    every = draw.uniform(1, 12)
    run.filled = lambda s: min(run.size, rate * every * (max(0.0, s - run.start) // every))
    run.added.append(teeth(draw, run.start))
    return run.make("replay beside rollouts", FILLING)


def compiled_shapes(draw: Random) -> Run:
    """A program for each shape that comes, of so many: new ones become rare."""
    run = begun(draw)
    shapes, each = draw.randint(5, 40), log_uniform(draw, 1, 30) * MIB
    at, gap, seen, marks = run.start, log_uniform(draw, 0.3, 4), set(), []
    while at < run.length:
        at += draw.expovariate(1 / gap)
        shape = draw.randrange(shapes)
        if shape not in seen:
            seen.add(shape)
            marks.append((at, each * draw.uniform(0.5, 1.5)))
    run.added.append(Steps(marks))
    return run.make("compiled shapes", NEITHER)


def first_epoch(draw: Random) -> Run:
    """Samples are kept as they are met for the first time, in an epoch of up to two minutes."""
    run = begun(draw)
    size, lasts = log_uniform(draw, 10, 1000) * MIB, log_uniform(draw, 10, 120)
    run.length = max(run.length, run.start + 3 * lasts)
    run.added.append(lambda s: size * min(1.0, max(0.0, s - run.start) / lasts))
    return run.make("first epoch", NEITHER)


def nested_collections(draw: Random) -> Run:
    """Garbage of young objects is collected often, that of old ones seldom."""
    run = begun(draw)
    run.added.append(_nested_teeth(draw, run.start))
    return run.make("nested collections", NEITHER)


def _nested_teeth(draw: Random, start: float) -> Amount:
    young, count = log_uniform(draw, 0.5, 6), draw.randint(4, 12)
    small, large = log_uniform(draw, 2, 40) * MIB, log_uniform(draw, 5, 150) * MIB
    old = young * count

    def amount(seconds: float) -> float:
        since = seconds - start
        if since <= 0:
            return 0.0
        return small * (since % young) / young + large * (since % old // young) / count

    return amount


def pages_taken_and_given_back(draw: Random) -> Run:
    """A full machine takes pages away at once; the run has them back bit by bit."""
    run = begun(draw)
    size, slow = log_uniform(draw, 10, 300) * MIB, log_uniform(draw, 3, 40)
    taken, at = [], run.start
    while (at := at + draw.expovariate(1 / 120)) < run.length:
        taken.append(at)

    def there(seconds: float) -> float:
        last = max((t for t in taken if t <= seconds), default=None)
        return size if last is None else size * -math.expm1(-(seconds - last) / slow)

    run.added.append(there)
    return run.make("pages taken and given back", NEITHER)


def longer_evaluations(draw: Random) -> Run:
    """Episodes of evaluations get longer with what is learnt, up to their time limit."""
    run = begun(draw)
    every, slow = draw.uniform(10, 60), log_uniform(draw, 30, 400)
    height, lasts = log_uniform(draw, 10, 300) * MIB, draw.uniform(1, 6)

    def evaluated(seconds: float) -> float:
        since = seconds - run.start
        learnt = -math.expm1(-max(0.0, since) / slow)
        return height * learnt if since > 0 and since % every < lasts else 0.0

    run.added.append(evaluated)
    return run.make("longer evaluations", NEITHER)


def loaders_of_each_epoch(draw: Random) -> Run:
    """Workers that load data are started anew with each epoch, and fill their queues."""
    run = begun(draw)
    every, slow = draw.uniform(20, 180), log_uniform(draw, 1, 15)
    workers, each = draw.randint(2, 8), log_uniform(draw, 10, 80) * MIB
    run.processes = lambda seconds: 1 + workers * (seconds > run.start)
    run.added.append(
        lambda s: (
            workers * each * -math.expm1(-((s - run.start) % every) / slow) if s > run.start else 0
        )
    )
    return run.make("loaders of each epoch", NEITHER)


def pages_copied_after_a_fork(draw: Random) -> Run:
    """Each worker copies the pages that it touches, until it has touched them all."""
    run = begun(draw)
    workers, each = draw.randint(2, 12), log_uniform(draw, 5, 100) * MIB
    paces = [log_uniform(draw, 3, 40) for _ in range(workers)]
    run.processes = lambda seconds: 1 + workers
    run.length = max(run.length, run.start + 10 * max(paces))
    run.added.append(
        lambda s: sum(each * -math.expm1(-max(0.0, s - run.start) / slow) for slow in paces)
    )
    return run.make("pages copied after a fork", NEITHER)


def queue_of_objects(draw: Random) -> Run:
    """A `deque(maxlen=...)` of Python objects: like a leak, until it is full."""
    run = begun(draw)
    size, rate = log_uniform(draw, 50, 2000) * MIB, log_uniform(draw, 0.3, 10) * MIB
    run.length = run.start + 1.5 * size / rate + 60
    run.added.append(lambda s: min(size, rate * max(0.0, s - run.start)))
    return run.make("queue of objects", NEITHER)


BEYOND = (queue_of_objects,)
KINDS = (
    *(leak_of_a_table_that_doubles, leak_of_evaluations, leak_of_two_workers),
    *(leak_with_collections, leak_after_a_pause, leak_of_shrinking_episodes),
    *(replay_beside_rollouts, compiled_shapes, first_epoch, nested_collections),
    *(pages_taken_and_given_back, longer_evaluations, loaders_of_each_epoch),
    *(pages_copied_after_a_fork,),
)
