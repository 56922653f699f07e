"""A script's text tells whether it trains more than once."""

from __future__ import annotations

from pathlib import Path

import pytest

from memfit.sources.script import LEARNS_IN_A_LOOP, learn_calls, script_notes


@pytest.mark.parametrize(
    ("text", "calls", "looped"),
    [
        ("model.learn(1000)", 1, False),
        ("learn = 3\nmodel.learn(learn)", 1, False),
        ("first.learn(10)\nsecond.learn(20)", 2, False),
        ("for _ in range(10):\n    model.learn(1000, reset_num_timesteps=False)", 1, True),
        ("while True:\n    if x:\n        model.learn(1)", 1, True),
        ("for e in envs:\n    check(e)\nmodel.learn(1)", 1, False),
        ("not python at all", 0, False),
    ],
)
def test_learning_more_than_once_is_seen(
    text: str, calls: int, looped: bool, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(text)
    assert learn_calls(script) == calls
    assert script_notes(script) == ((LEARNS_IN_A_LOOP,) if looped else ())


def test_a_script_that_is_gone_has_nothing_to_say(tmp_path: Path) -> None:
    assert learn_calls(tmp_path / "missing.py") == 0
    assert script_notes(tmp_path / "missing.py") == ()
