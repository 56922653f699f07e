"""Lists and queues of a program are found with how long they may become."""

from __future__ import annotations

from collections import deque
from typing import Any

from memfit.child.loop_lists import Length, list_bounds, lists_of, queues_of

TEXT = """
class Replay:
    def push(self, x):
        if len(self.data) < self.capacity:
            self.data.append(x)
    def ready(self): return len(self.data) >= 3
games = games[-Config.window:]
if 20 <= len(endless): print(endless)
"""


class Replay:
    """A list that is written over where it is full."""

    def __init__(self, rows: int, capacity: int) -> None:
        self.data, self.capacity = [0] * rows, capacity


class Config:
    """Settings."""

    window = 40


def test_queues_are_found_by_their_path() -> None:
    class Agent:
        def __init__(self) -> None:
            self.memory = deque([1, 2], maxlen=10)
            self.endless = deque([1])

    held: list[tuple[str, Any]] = [("agent", Agent()), ("n", 3)]
    assert queues_of(held) == {"agent.memory": Length(2, 10)}
    assert lists_of(held, ()) == {"agent.endless": Length(1)}


def test_what_a_list_is_held_against_is_its_bound() -> None:
    replays = {"red": Replay(5, 64), "blue": Replay(7, 32)}
    held = [("replays", replays), ("games", [0] * 11), ("endless", [0] * 30), ("Config", Config)]
    assert lists_of(held, [TEXT]) == {
        "replays['red'].data": Length(5, 64),
        "replays['blue'].data": Length(7, 32),
        "games": Length(11, 40),
        "endless": Length(30),
    }


def test_those_of_a_few_alike_things_are_told_together_too() -> None:
    found = lists_of([("agents", [Replay(5, 64), Replay(7, 32)])], [TEXT])
    assert found["agents[1].data"] == Length(7, 32)
    assert found["agents[*].data"] == Length(12, 96)


def test_what_is_no_python_bounds_nothing() -> None:
    assert list_bounds(["def", "len(x)", "x[-1]"]) == {}
