"""Kinds of runs of an earlier report, in answer to which the analysis was changed."""

from __future__ import annotations

import math
from random import Random

from benchmarks.forecast.runs import (
    FILLING,
    LEAK,
    MIB,
    NEITHER,
    Run,
    Steps,
    begun,
    breathing,
    log_uniform,
)


def leak_whose_pace_changes(draw: Random) -> Run:
    """Faster or slower with what is learnt: the pace wanders by up to a half."""
    run = begun(draw)
    rate, start = log_uniform(draw, 0.05, 4) * MIB, run.start
    run.length = start + min(2000, max(120, 400 * MIB / rate))
    slow, turn = draw.uniform(60, 600), draw.uniform(0, 2 * math.pi)
    wander = draw.uniform(0, 0.5)

    def leaked(seconds: float) -> float:
        since = max(0.0, seconds - start)
        waves = math.cos(turn) - math.cos(turn + since / slow)
        return max(0.0, rate * (since + wander * slow * waves))

    run.leak = leaked
    run.added.append(breathing(draw, start, longest=15))
    return run.make("leak whose pace changes", LEAK)


def leak_of_episodes(draw: Random) -> Run:
    """Episodes of very different lengths; each leaves in proportion to its length."""
    run = begun(draw)
    rate = log_uniform(draw, 0.05, 4) * MIB
    run.length = run.start + min(2000, max(120, 400 * MIB / rate))
    mean, at, marks = log_uniform(draw, 0.5, 8), run.start, []
    while at < run.length:
        lasts = mean * draw.paretovariate(2.5) * 0.6
        at += lasts
        marks.append((at, rate * lasts))
    run.leak = Steps(marks)
    return run.make("leak of episodes", LEAK)


def replay_beside_evaluations(draw: Random) -> Run:
    """A replay that is filled, beside evaluations at equal distances."""
    run = begun(draw)
    run.size, rate = log_uniform(draw, 200, 4000) * MIB, log_uniform(draw, 0.2, 10) * MIB
    run.filled = lambda seconds: min(run.size, max(0.0, rate * (seconds - run.start)))
    every, lasts = draw.uniform(20, 120), draw.uniform(2, 15)
    height = log_uniform(draw, 10, 200) * MIB
    run.added.append(
        lambda seconds: height if seconds > run.start and seconds % every < lasts else 0.0
    )
    return run.make("replay beside evaluations", FILLING)


def late_collections(draw: Random) -> Run:
    """Garbage in cycles, which is collected at uneven times."""
    run = begun(draw)
    rate, mean = log_uniform(draw, 0.5, 15) * MIB, log_uniform(draw, 1, 6)
    drops, at = [run.start], run.start
    while at < run.length:
        at += mean * draw.uniform(0.4, 1.6)
        drops.append(at)
    run.added.append(
        lambda s: rate * (s - max((d for d in drops if d <= s), default=s)) if s > run.start else 0
    )
    run.every = max(run.every, 0.5)
    return run.make("late collections", NEITHER)


def workers_that_come_and_go(draw: Random) -> Run:
    """Evaluation workers, started anew each time, all of them as large as the last."""
    run = begun(draw)
    each, count = draw.uniform(30, 300) * MIB, draw.randint(1, 8)
    every, lasts = draw.uniform(15, 120), draw.uniform(3, 12)

    def there(seconds: float) -> float:
        since = (seconds - run.start) % every if seconds > run.start else every
        return count * min(1.0, since / 2) if since < lasts else 0.0

    run.processes = lambda seconds: 1 + math.ceil(there(seconds))
    run.added.append(lambda seconds: each * there(seconds))
    return run.make("workers that come and go", NEITHER)


def fragments(draw: Random) -> Run:
    """A heap that wanders around what it needs, and comes back to it."""
    run = begun(draw)
    wide, slow, every = log_uniform(draw, 1, 12) * MIB, log_uniform(draw, 3, 20), 0.25
    levels, level = [], 0.0
    for _ in range(int(run.length / every) + 2):
        level += -level * every / slow + draw.gauss(0, wide * math.sqrt(2 * every / slow))
        levels.append(level)
    run.added.append(lambda seconds: 3 * wide + levels[int(seconds / every)])
    return run.make("fragments", NEITHER)


def compiling(draw: Random) -> Run:
    """A start with long silences: compilers, downloads, then a jump to what training needs."""
    run = begun(draw)
    at, marks = run.start, []
    for _ in range(draw.randint(1, 3)):
        at += log_uniform(draw, 5, 60)
        marks.append((at, log_uniform(draw, 30, 600) * MIB))
    run.added.append(Steps(marks))
    run.start = at
    run.length = max(run.length, at + 120)
    run.added.append(breathing(draw, at, longest=15))
    return run.make("compiling", NEITHER)


def leak_that_pauses(draw: Random) -> Run:
    """A leak of one phase: it stands still while the other phase lasts."""
    run = begun(draw)
    rate, start = log_uniform(draw, 0.1, 6) * MIB, run.start
    on, off = draw.uniform(2, 20), draw.uniform(1, 15)
    run.length = start + min(2000, max(120, 400 * MIB / rate * (on + off) / on))

    def leaked(seconds: float) -> float:
        turns, since = divmod(max(0.0, seconds - start), on + off)
        return rate * (turns * on + min(since, on))

    run.leak = leaked
    return run.make("leak that pauses", LEAK)


def checkpoints_kept(draw: Random) -> Run:
    """The last few checkpoints are kept in memory: a step for each, until they are so many."""
    run = begun(draw)
    each, most = log_uniform(draw, 5, 150) * MIB, draw.randint(2, 6)
    every, first = log_uniform(draw, 10, 120), run.start + draw.uniform(5, 60)
    run.length = max(run.length, first + (most + 4) * every)
    run.added.append(Steps([(first + i * every, each) for i in range(most)]))
    if draw.random() < 0.5:
        run.added.append(breathing(draw, run.start))
    return run.make("checkpoints kept", NEITHER)


def long_evaluations(draw: Random) -> Run:
    """Every few minutes a long evaluation, whose episodes are kept until it is over."""
    run = begun(draw)
    every, lasts = draw.uniform(60, 240), draw.uniform(8, 40)
    height = log_uniform(draw, 10, 300) * MIB
    run.length = max(run.length, run.start + 3 * every)

    def evaluated(seconds: float) -> float:
        since = (seconds - run.start) % every - (every - lasts)
        return height * since / lasts if seconds > run.start and since > 0 else 0.0

    run.added.append(evaluated)
    return run.make("long evaluations", NEITHER)


def arenas_that_settle(draw: Random) -> Run:
    """Threads that meet in malloc get arenas of their own: some at first, then seldom one more."""
    run = begun(draw)
    each, at, marks = log_uniform(draw, 1, 40) * MIB, run.start, []
    wait = log_uniform(draw, 0.5, 10)
    for _ in range(draw.randint(4, 16)):
        at += draw.expovariate(1 / wait)
        wait *= draw.uniform(1.1, 2)
        marks.append((at, each * draw.uniform(0.5, 1.5)))
    run.added.append(Steps(marks))
    run.added.append(breathing(draw, run.start, longest=20))
    return run.make("arenas that settle", NEITHER)


def leak_that_speeds_up(draw: Random) -> Run:
    """Each step leaves as much, and steps come faster, when exploring ends: up to three times."""
    run = begun(draw)
    rate, start = log_uniform(draw, 0.1, 4) * MIB, run.start
    run.length = start + min(2000, max(150, 500 * MIB / rate))
    faster, ends = draw.uniform(1.2, 3), start + draw.uniform(0.2, 0.6) * (run.length - start)
    run.leak = lambda seconds: (
        rate * (max(0.0, min(seconds, ends) - start) + faster * max(0.0, seconds - ends))
    )
    run.added.append(breathing(draw, start, longest=15))
    return run.make("leak that speeds up", LEAK)


def leak_below_levels(draw: Random) -> Run:
    """A leak below a curriculum: each level's world is larger than the one before, or smaller."""
    run = begun(draw)
    rate, start, at = log_uniform(draw, 0.1, 6) * MIB, run.start, run.start
    run.length = start + min(2000, max(150, 500 * MIB / rate))
    run.leak = lambda seconds: max(0.0, rate * (seconds - start))
    marks, tall = [], log_uniform(draw, 5, 80) * MIB
    while (at := at + draw.uniform(30, 200)) < run.length:
        marks.append((at, tall * draw.uniform(-0.6, 1)))
    run.added.append(Steps([(start, tall), *marks]))
    return run.make("leak below levels", LEAK)


def leak_beside_reclaimed_pages(draw: Random) -> Run:
    """A leak on a full machine, which takes pages of files away now and then."""
    run = begun(draw)
    rate, start, at = log_uniform(draw, 0.2, 6) * MIB, run.start, run.start
    run.length = start + min(2000, max(150, 500 * MIB / rate))
    run.leak = lambda seconds: max(0.0, rate * (seconds - start))
    pages, marks = log_uniform(draw, 5, 60) * MIB, []
    run.added.append(lambda seconds: 2 * pages)
    while (at := at + draw.expovariate(1 / 40)) < run.length:
        share = draw.uniform(0.1, 1)
        marks += [(at, -pages * share), (at + draw.uniform(1, 30), pages * share)]
    run.added.append(Steps(marks))
    return run.make("leak beside reclaimed pages", LEAK)


KINDS = (
    *(leak_whose_pace_changes, leak_of_episodes, replay_beside_evaluations, late_collections),
    *(workers_that_come_and_go, fragments, compiling, leak_that_pauses),
    *(checkpoints_kept, long_evaluations, arenas_that_settle),
    *(leak_that_speeds_up, leak_below_levels, leak_beside_reclaimed_pages),
)
