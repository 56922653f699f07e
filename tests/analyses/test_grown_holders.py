"""Holders at two moments subtracted, and what they make of a growth."""

from __future__ import annotations

from memfit.analyses.grown_holders import bound_of, grown, kind_of
from memfit.model import Counted, Growing, GrowthKind, Judgement, MemoryVerdict


def test_a_container_and_what_is_in_it_are_one_holder() -> None:
    before = {("env.history[*]", "arrays"): (1000, 10), ("env.level", "arrays"): (9000, 1)}
    after = {
        ("env.history[*]", "arrays"): (101_000, 110),
        ("env.history", "python"): (12_000, 110),
        ("env.level", "arrays"): (9000, 1),
        ("memfit.child.env.x", "python"): (99_000, 5),
    }
    (one,) = grown(before, after, frames=100)
    assert (one.path, one.bytes, one.what) == ("env.history[*]", 112_000, "arrays")
    assert one.per_frame == 1120 and one.elements == 110


def judged(*rows: tuple[Counted, float]) -> Judgement:
    growing = tuple(
        Growing(what=what, per_frame=pace, per_episode=0.0, low=0.0, high=0.0)
        for what, pace in rows
    )
    return Judgement(verdict=MemoryVerdict.LEAKING, why="", growing=growing)


def test_what_nobody_in_python_holds_is_native() -> None:
    assert kind_of(judged((Counted.MALLOC, 1000.0)), []) is GrowthKind.NATIVE
    holders = grown({}, {("env.a[*]", "arrays"): (100_000, 9)}, 100)
    assert kind_of(judged((Counted.MALLOC, 1000.0)), holders) is GrowthKind.ARRAYS
    holders = grown({}, {("env.a", "python"): (100_000, 9)}, 100)
    assert kind_of(judged((Counted.PYTHON, 1000.0)), holders) is GrowthKind.PYTHON


def test_threads_and_files_are_told_before_their_bytes() -> None:
    rows = judged((Counted.PYTHON, 10.0), (Counted.MAPPED, 1e6), (Counted.THREADS, 0.1))
    assert kind_of(rows, []) is GrowthKind.THREADS
    assert kind_of(judged((Counted.MAPPED, 4096.0)), []) is GrowthKind.MAPPED
    rows = judged((Counted.FILES, 1.0), (Counted.SHARED, 4096.0))
    assert kind_of(rows, []) is GrowthKind.SHARED
    assert kind_of(judged(), []) is None


def test_a_bound_is_told_where_there_is_one() -> None:
    told = {"bound": "maxlen of the deque", "capacity": 100, "length": 7}
    bound = bound_of(told, "env.last")
    assert bound is not None and (bound.capacity, bound.length) == (100, 7)
    assert bound_of({}, "env.last") is None
