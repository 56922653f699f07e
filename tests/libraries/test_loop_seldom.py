"""Conditions of what a program does every so often ask first; all others stay as they are."""

from __future__ import annotations

import builtins
from typing import Any

import pytest

from memfit.libraries.loop.main_code import main_code
from memfit.libraries.loop.seldom import DUE

TEXT = """
done = []
def evaluate(): done.append("evaluate")
class agent:
    save = lambda: done.append("save")
    eval = lambda: done.append("eval")
for step in range(1, 4):
    if step % every == 0:
        evaluate()
    if wanted and not step % every:
        with open("/dev/null"):
            agent.save()
    if step % every == 0:
        agent.eval()
    if step == 9:
        evaluate()
"""


def run(monkeypatch: pytest.MonkeyPatch, **variables: Any) -> tuple[list[str], list[str]]:
    asked: list[str] = []

    def due(value: bool, place: str) -> bool:
        asked.append(place)
        return len(asked) < 3 or value

    monkeypatch.setattr(builtins, DUE, due, raising=False)
    main: dict[str, Any] = {"every": 1000, "wanted": True, **variables}
    exec(main_code(TEXT, "train.py"), main)
    return asked, main["done"]


def test_what_evaluates_or_saves_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, done = run(monkeypatch)
    assert asked == ["train.py:8:7", "train.py:10:18"] * 3
    assert done == ["evaluate", "save"]


def test_what_is_not_wanted_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, done = run(monkeypatch, wanted=False)
    assert asked == ["train.py:8:7"] * 3 and done == ["evaluate"] * 2


def test_its_own_turn_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(builtins, DUE, raising=False)
    main: dict[str, Any] = {"every": 2, "wanted": True}
    exec(main_code(TEXT, "train.py"), main)
    assert main["done"] == ["evaluate", "save", "eval"]
