"""Variables of a running script, without those of memfit's own functions."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from memfit.child.script_variables import script_variables

CALLED = """
def look(variables, frame):
    counted = 7
    return dict(variables(frame(), "train.py"))
"""


@pytest.mark.parametrize(
    ("module", "seen"),
    [("train", True), ("memfit.measure.survey.trial", False), ("memfit.systems.drone", True)],
)
def test_what_memfit_counts_while_it_looks_is_no_variable_of_the_script(
    module: str, seen: bool
) -> None:
    names: dict[str, Any] = {"__name__": module}
    exec(CALLED, names)
    of_the_script = 5
    found = names["look"](script_variables, sys._getframe)
    assert found.get("of_the_script") == of_the_script
    assert ("counted" in found) is seen
