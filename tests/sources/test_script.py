"""A script's text tells whether it trains more than once."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from memfit.sources.script import LEARNS_AGAIN, learns_again, notes


@pytest.mark.parametrize(
    ("text", "again"),
    [
        ("model.learn(1000)", False),
        ("learn = 3\nmodel.learn(learn)", False),
        ("first.learn(10)\nsecond.learn(20)", True),
        ("for _ in range(10):\n    model.learn(1000, reset_num_timesteps=False)", True),
        ("while True:\n    if x:\n        model.learn(1)", True),
        ("for e in envs:\n    check(e)\nmodel.learn(1)", False),
    ],
)
def test_learning_twice_is_seen(text: str, again: bool) -> None:
    assert learns_again(ast.parse(text)) is again


def test_a_note_says_so(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("a.learn(1)\nb.learn(1)\n")
    assert notes(script) == (LEARNS_AGAIN,)
    script.write_text("a.learn(1)\n")
    assert notes(script) == ()
    assert notes(tmp_path / "missing.py") == ()
