"""Every error says what it is, has an exit code, and stands in the tree at the top of its file."""

from __future__ import annotations

import inspect

import pytest

from memfit import errors
from memfit.errors import MemfitError, OverLimit, TargetFailed

ALL = [
    error
    for _, error in inspect.getmembers(errors, inspect.isclass)
    if error.__module__ == errors.__name__
]


@pytest.mark.parametrize("error", ALL)
def test_every_error_is_documented(error: type[MemfitError]) -> None:
    assert issubclass(error, MemfitError)
    assert error.__doc__ and error.__doc__.strip().endswith(".")
    drawn = {
        line.replace("│", " ").replace("├──", " ").replace("└──", " ").split()[0]: line
        for line in (errors.__doc__ or "").splitlines()
        if line.strip()
    }
    assert error.__name__ in drawn, "draw it in the tree"
    if error is not MemfitError:
        assert f"({error.exit_code})" in drawn[error.__name__]


@pytest.mark.parametrize("error", ALL)
def test_exit_codes_are_those_of_the_design(error: type[MemfitError]) -> None:
    assert error.exit_code == {TargetFailed: 1, OverLimit: 3}.get(error, 2)


def test_an_error_may_carry_the_targets_own_output() -> None:
    assert MemfitError("no").output == ""
    assert TargetFailed("no", output="Traceback").output == "Traceback"
