"""What is said of a script that did not learn: how far it came, and what to do."""

from __future__ import annotations

import pytest

from memfit.api.child_errors import error_of
from memfit.errors import NeverLearned, TargetFailed
from memfit.measure.children.sandbox import Ended
from memfit.model.job import Answer, Status
from memfit.model.trial import Progress


def ended(status: Status, progress: Progress | None = None, output: str = "") -> Ended:
    answer = Answer(status=status, progress=progress, output=output, reason="120 s")
    return Ended(
        peak_bytes=0,
        outside_bytes=0,
        seconds=1.0,
        exit_code=None,
        over_limit=False,
        timed_out=False,
        answer=answer,
        output="",
    )


@pytest.mark.parametrize(
    ("progress", "said"),
    [
        (None, "within 120 s: give it more time"),
        (Progress(), "no env was stepped"),
        (Progress(env_steps=1500), "it had made 1,500 env steps, and no update"),
        (Progress(env_steps=1500), "let it update sooner"),
        (Progress(env_steps=1500, updates=3), "1,500 env steps and 3 updates"),
        (Progress(env_steps=1500, updates=3), "the target learned"),
    ],
)
def test_a_script_that_took_too_long_is_told_how_far_it_came(
    progress: Progress | None, said: str
) -> None:
    error = error_of(ended(Status.TIMED_OUT, progress), "train.py")
    assert isinstance(error, NeverLearned) and said in str(error)


def test_a_script_that_trains_nothing() -> None:
    said = str(error_of(ended(Status.NEVER_LEARNED, Progress(env_steps=10)), "train.py"))
    assert "optimizer" in said and "10 env steps, and no update" in said


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("usage: t [-h] --env E\nt: error: arguments are required: --env", "needs after --"),
        ("FileNotFoundError: data.csv", "a file that is not there"),
        ("pygame.error: No available video device", "a display"),
        ("UsageError: api_key not configured", "credentials"),
        ("KeyError: 'WANDB_API_KEY'", "credentials"),
        ("KeyError: 'HF_TOKEN'", "credentials"),
        ("pyglet.display.xlib.NoSuchDisplayException: no", "a display"),
        ("pygame.error: x11 not available", "a display"),
        ("ModuleNotFoundError: No module named 'mine'", "a package that is not there"),
        ("socket.gaierror: Name or service not known", "--network"),
        ("ValueError: no", "fix the error above"),
    ],
)
def test_what_a_script_lacks_is_named(output: str, said: str) -> None:
    error = error_of(ended(Status.TARGET_FAILED, Progress(env_steps=5), output), "train.py")
    assert isinstance(error, TargetFailed)
    assert said in str(error) and "after 5 env steps" in str(error)


def test_a_loop_that_failed_later_had_begun_to_learn() -> None:
    error = error_of(ended(Status.TARGET_FAILED, Progress(env_steps=5, updates=7)), "train.py")
    assert "failed after 7 updates" in str(error)
