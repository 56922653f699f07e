"""Turns of the outermost loop of a script."""

from __future__ import annotations

from typing import Any

from memfit.child.outer_loop import OuterLoop, in_a_loop, loops_at_work


class TestOuterLoop:
    def test_the_outermost_loop_over_elements_turns(self) -> None:
        outer = OuterLoop()
        assert turns_of(outer) == [False, False, True, False, True, False]

    def test_a_while_alone_has_no_elements(self) -> None:
        outer, seen, count = OuterLoop(), [], 0
        while count < 3:
            seen.append(outer.turned())
            count += 1
        assert seen == [None, None, None]

    def test_a_loop_of_many_instructions_is_known(self) -> None:
        """Whose beginning is written in two parts."""
        text = "def long(heard):\n for turn in range(2):\n  heard(turn)\n"
        text += "".join(f"  a{n} = turn + {n}\n" for n in range(200))
        made: dict[str, Any] = {}
        exec(compile(text, "train.py", "exec"), made)
        outer, seen = OuterLoop(), []
        made["long"](lambda turn: seen.append((outer.turned(), in_a_loop())))
        assert seen == [(False, True), (True, True)]

    def test_what_unpacks_its_elements_is_known_by_the_first(self) -> None:
        names: list[str] = []
        for _first, _second in enumerate("a"):
            names.extend(loop.variable for _, loop in list(loops_at_work()))
        assert names[-1] == "_first"


def turns_of(outer: OuterLoop) -> list[bool | None]:
    found: list[bool | None] = []
    for _generation in range(3):
        for _member in range(2):
            found += [outer.turned()]
    return found
