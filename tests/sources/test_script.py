"""A script's text tells whether it trains more than once."""

from __future__ import annotations

from pathlib import Path

import pytest

from memfit.sources.script import (
    LEARNS_IN_A_LOOP,
    goes_on_after,
    is_counted_loop,
    learn_calls,
    learns_again,
    script_notes,
)


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
    assert learns_again(script) == (looped or calls > 1)


def test_a_script_that_is_gone_has_nothing_to_say(tmp_path: Path) -> None:
    assert learn_calls(tmp_path / "missing.py") == 0
    assert script_notes(tmp_path / "missing.py") == ()
    assert goes_on_after(tmp_path / "missing.py") == ""


@pytest.mark.parametrize(
    ("text", "line", "names"),
    [
        ("model.learn(10)\nevaluate_policy(model, env)", 2, "evaluate_policy()"),
        ("model.learn(10)\nmodel.save('m')\nprint(time.time())\nenv.close()", None, ""),
        (
            "def main():\n    model.learn(1)\n    env = RecordVideo(gym.make('x'))\nmain()",
            3,
            "RecordVideo(), make()",
        ),
        ("try:\n    model.learn(1)\nfinally:\n    env.close()\nshow(env)", 5, "show()"),
        ("if x:\n    a.learn(1)\nelse:\n    b.learn(1)\nplay(5)", 5, "play()"),
        ("def play():\n    render()\nmodel.learn(1)\ndef later():\n    render()", None, ""),
        ("import this", None, ""),
    ],
)
def test_what_comes_after_learning_is_said(
    text: str, line: int | None, names: str, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(text)
    assert goes_on_after(script) == (f"from line {line} ({names})" if line else "")


@pytest.mark.parametrize(
    ("text", "line", "counted"),
    [
        ("for _ in range(9):\n    film()", 2, True),
        ("while not done:\n    film()", 2, False),
        ("for _ in range(9):\n    film()\n    if done:\n        break", 2, False),
        ("while more:\n    for _ in range(9):\n        film()", 3, True),
        ("for _ in range(9):\n    while not done:\n        film()", 3, False),
        ("for _ in range(9):\n    film()\nevaluate()", 3, False),
        ("for _ in range(9):\n    film()", 0, False),
    ],
)
def test_loops_that_count_are_told_from_those_that_wait(
    text: str, line: int, counted: bool, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(text)
    assert is_counted_loop(script, line) is counted
