"""Sizes that a person wrote, with their values worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memfit.model import names_in, parse_size
from tests.model.strategies import knob_values

KNOBS = {"n_envs": 8, "n_steps": 20, "batch_size": 64}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (17, 17),
        ("17", 17),
        (" n_steps ", 20),
        ("n_steps * n_envs", 160),
        ("n_steps * n_envs // 3", 53),
        ("n_steps - n_envs - 2", 10),
        ("n_steps - (n_envs - 2)", 14),
        ("n_steps + 2 * n_envs", 36),
        ("min(batch_size, n_steps * n_envs)", 64),
        ("min(n_steps, n_envs)", 8),
        ("max(batch_size, n_steps * n_envs)", 160),
        ("max(batch_size // n_envs, 9)", 9),
        ("ceil_div(n_steps, n_envs)", 3),
        ("ceil_div(n_steps, 5)", 4),
        ("max(min(n_steps, 7), ceil_div(n_envs, 3))", 7),
    ],
)
def test_an_expression_has_its_value(text: int | str, value: int) -> None:
    assert parse_size(text, KNOBS).evaluate(KNOBS) == value


@given(knob_values)
def test_calls_are_those_of_python(knobs: dict[str, int]) -> None:
    envs, steps = knobs["n_envs"], knobs["n_steps"]
    for text, value in (
        ("min(n_envs, n_steps)", min(envs, steps)),
        ("max(n_envs, n_steps)", max(envs, steps)),
        ("ceil_div(n_envs, n_steps + 1)", -(-envs // (steps + 1))),
    ):
        assert parse_size(text, knobs).evaluate(knobs) == value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("max(n_steps)", "needs two sizes"),
        ("max()", "needs two sizes"),
        ("min(n_steps, n_envs, 3)", "needs two sizes"),
        ("ceil_div(n_steps)", "needs two sizes"),
        ("max(n_steps, default=3)", "needs two sizes"),
        ("max(*n_steps)", "needs two sizes"),
        ("abs(n_steps)", "cannot stand in a size"),
        ("n_steps(2)", "cannot stand in a size"),
        ("math.max(n_steps, 2)", "cannot stand in a size"),
        ("n_steps ** 2", "cannot stand in a size"),
        ("n_steps / 2", "cannot stand in a size"),
        ("2.5", "cannot stand in a size"),
        ("True", "cannot stand in a size"),
        ("'n_steps'", "cannot stand in a size"),
        ("n_stepz * 2", "'n_stepz' is no knob of this run: its knobs are batch_size, n_envs, n_st"),
        ("max(n_stepz, 2)", "'n_stepz' is no knob"),
        ("n_steps *", "is no expression"),
        ("", "is no expression"),
        ("3 // 0", "divides by zero"),
        ("ceil_div(3, 0)", "divides by zero"),
        ("1 + " * 60 + "1", "longer than 200"),
    ],
)
def test_what_is_wrong_is_said(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said.replace("*", r"\*")):
        parse_size(text, KNOBS)


def test_a_run_without_knobs_says_so() -> None:
    with pytest.raises(ValueError, match="its knobs are none"):
        parse_size("n_steps", {})


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (12, []),
        ("12", []),
        ("n_steps", ["n_steps"]),
        ("n_steps * n_envs", ["n_steps", "n_envs"]),
        ("max(n_envs, min(3, batch_size))", ["n_envs", "batch_size"]),
        ("ceil_div(total, n_envs) + n_envs", ["total", "n_envs", "n_envs"]),
        (" b + (a - c)", ["b", "a", "c"]),
    ],
)
def test_the_names_stand_in_order(text: int | str, names: list[str]) -> None:
    assert list(names_in(text)) == names


@given(st.lists(st.sampled_from(("ant", "bee", "cat")), min_size=1, max_size=6))
def test_every_name_is_found(names: list[str]) -> None:
    assert list(names_in(" + ".join(names))) == names
