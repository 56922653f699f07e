"""The main module's code: classes are watched, and made as without memfit."""

from __future__ import annotations

import builtins
from typing import Any

import pytest

from memfit.libraries.loop.main_code import WATCHED, main_code, main_spec

FRAMES = """
import sys

class Meta(type):
    def __new__(meta, name, bases, own):
        own["made_by"] = sys._getframe(1).f_code.co_name
        return super().__new__(meta, name, bases, own)

class Env(metaclass=Meta):
    '''An env.'''
    body_in = sys._getframe(1).f_code.co_name
    def reset(self) -> int: ...
    def step(self, action: int) -> int: ...

def make():
    class Local:
        def step(self): ...
    return Local
"""


def run(text: str, knobs: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    watched: list[str] = []

    def watch(cls: type) -> type:
        watched.append(cls.__name__)
        return cls

    monkeypatch.setattr(builtins, WATCHED, watch, raising=False)
    variables: dict[str, Any] = {"__name__": "__main__", "watched": watched}
    exec(main_code(text, "train.py", knobs), variables)
    return variables


def test_classes_with_a_step_are_watched_and_see_who_makes_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    main = run(FRAMES, {}, monkeypatch)
    assert main["watched"] == ["Env"]
    assert main["Env"].made_by == main["Env"].body_in == "<module>"
    main["make"]()
    assert main["watched"] == ["Env", "Local"]


def test_a_script_has_its_own_future_and_doc(monkeypatch: pytest.MonkeyPatch) -> None:
    main = run("'''Trains.'''\nN = 4\ndef f(a: N + 1): ...", {"N": 7}, monkeypatch)
    assert main["f"].__annotations__ == {"a": 8}
    assert main["__doc__"] == "Trains."


def test_what_is_run_of_a_package_is_its_main() -> None:
    assert main_spec("json.tool").name == "json.tool"  # type: ignore[union-attr]
    assert main_spec("memfit").name == "memfit.__main__"  # type: ignore[union-attr]


def test_where_nothing_watches_a_script_runs_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(builtins, WATCHED, raising=False)
    variables: dict[str, Any] = {"__name__": "__main__"}
    exec(main_code(FRAMES, "train.py"), variables)
    assert variables["Env"].made_by == "<module>"
