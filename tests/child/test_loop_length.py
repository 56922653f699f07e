"""When a run ends, from the loops that it is in."""

from __future__ import annotations

import linecache
import sys
from types import FrameType
from typing import Any

import pytest

from memfit.analyses.run_length import run_length
from memfit.child.loop_bounds import loops_of
from memfit.model.trial import LoopBound


class Here(Exception):
    """Where a program is looked at."""


def bounds_in(text: str, at: int) -> list[tuple[LoopBound, ...]]:
    """The loops that a program is in where it calls `look` for so many times."""
    left = [at]
    found: list[tuple[LoopBound, ...]] = []

    def look() -> None:
        left[0] -= 1
        if left[0] == 0:
            frame: FrameType | None = sys._getframe(1)
            found.extend(loops_of(frame))
            raise Here

    name = f"<program {hash(text)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    with pytest.raises(Here):
        exec(compile(text, name, "exec"), {"look": look, "__name__": "program"})
    return found[len(loops_of(sys._getframe())) :]  # without those of the tests


def steps_of(text: str, at: int, *, each: int = 1, updating: bool = False) -> Any:
    """The length of a run that steps envs, so many at once, where it calls `look`."""
    return run_length(bounds_in(text, at), steps=at * each, at_once=each, updating=updating)


class TestBounds:
    def test_a_range_knows_its_turns(self) -> None:
        (bounds,) = [b for b in bounds_in("for step in range(2, 20, 2):\n    look()", 3) if b]
        assert bounds == (LoopBound(done=2, total=9, counts=True, line=bounds[0].line),)
        assert bounds[0].line == "for step in range(2, 20, 2)"

    def test_a_while_and_its_breaks_compare_counters(self) -> None:
        text = """
class Config:
    total = 500
def train(config):
    step = 0
    while step < config.total:
        step += 10
        look()
        if step >= 300 or 400 <= step:
            break
train(Config())
"""
        (bounds,) = [b for b in bounds_in(text, 2) if b]
        assert [(b.done, b.total) for b in bounds] == [(20, 500), (20, 300), (20, 400)]

    def test_what_is_no_bound_of_whole_numbers_is_none(self) -> None:
        text = """
loss, done = 0.5, False
while not done and loss < 2:
    if loss > 0.9: break
    for item in [1, 2]:
        look()
"""
        assert [b for b in bounds_in(text, 1) if b] == []

    def test_repetitions_of_the_run_are_no_part_of_it(self) -> None:
        text = "for seed in range(5):\n    for step in range(7):\n        look()"
        (bounds,) = [b for b in bounds_in(text, 3) if b]
        assert bounds[0].total == 7

    def test_only_loops_of_the_functions_at_work_count(self) -> None:
        text = """
def inner():
    for j in range(4):
        look()
def outer():
    for j in range(50):
        pass
    for i in range(9):
        inner()
outer()
"""
        found = [b for b in bounds_in(text, 6) if b]
        assert [(b[0].done, b[0].total) for b in found] == [(1, 9), (1, 4)]


class TestLength:
    def test_a_rollout_of_several_envs(self) -> None:
        text = "for it in range(1, 6):\n    for step in range(8):\n        look()"
        found = steps_of(text, 19, each=4)
        assert found.steps == 5 * 8 * 4 and found.exact

    def test_steps_before_the_loop_count_too(self) -> None:
        text = "for _ in range(10):\n    look()\nfor step in range(30):\n    look()"
        assert steps_of(text, 17).steps == 40

    def test_a_counter_of_steps_of_one_env_or_all(self) -> None:
        text = "n = 0\nwhile n < 100:\n    n += {}\n    look()"
        assert steps_of(text.format(1), 20).steps == 100
        assert steps_of(text.format(4), 20, each=4).steps == 100
        assert steps_of(text.format(1), 20, each=4).steps == 400

    def test_episodes_are_as_long_as_they_were(self) -> None:
        text = """
for episode in range(50):
    t = 0
    while True:
        look()
        t += 1
        if t == 10: break
"""
        found = steps_of(text, 41)
        assert found.steps == 41 * 50 // 4 and not found.exact

    def test_several_steps_in_a_turn(self) -> None:
        text = "for step in range(30):\n    look()\n    look()"
        found = steps_of(text, 20)
        assert found.steps == 60 and found.exact

    def test_turns_within_an_expression_are_not_known(self) -> None:
        text = """
def play():
    for _ in range(10):
        look()
for iteration in range(5):
    episodes = [play() for _ in range(6)]
"""
        found = steps_of(text, 121)
        assert found.steps == 121 * 5 // 2 and not found.exact

    def test_in_an_update_the_turns_steps_are_made(self) -> None:
        text = "for it in range(10):\n    for epoch in range(4):\n        look()"
        found = run_length(bounds_in(text, 9), steps=3 * 64, at_once=8, updating=True)
        assert found is not None and found.steps == 640

    def test_the_first_end_to_come_counts(self) -> None:
        text = "for n in range(1, 10**6):\n    look()\n    if n >= 500: break"
        assert steps_of(text, 100).steps == 500
        assert run_length([()], steps=5, at_once=1, updating=False) is None
