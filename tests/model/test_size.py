"""Sizes are exact, print as the formula they compute, and compile to the same numbers."""

from __future__ import annotations

import ast
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memfit.model import Size, between_readings, ceil_div, const, knob, maximum, minimum, size
from memfit.model.size import compile_sizes, total
from tests.model.strategies import knob_values, sizes


def read(text: str, knobs: dict[str, int]) -> int:
    """What a person computes who reads a printed formula."""
    plain = re.sub(r"(?<=\d),(?=\d{3})", "", text)
    return _value(ast.parse(plain, mode="eval").body, knobs)


def _value(node: ast.expr, knobs: dict[str, int]) -> int:
    match node:
        case ast.Constant(value=int() as value):
            return value
        case ast.Name(id=name):
            return knobs[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, knobs)
        case ast.Call(func=ast.Name(id="ceil"), args=[ast.BinOp(op=ast.Div()) as quotient]):
            return -(-_value(quotient.left, knobs) // _value(quotient.right, knobs))
        case ast.Call(func=ast.Name(id="max"), args=[a, b]):
            return max(_value(a, knobs), _value(b, knobs))
        case ast.Call(func=ast.Name(id="min"), args=[a, b]):
            return min(_value(a, knobs), _value(b, knobs))
        case ast.BinOp(left=left, op=op, right=right):
            a_value, b_value = _value(left, knobs), _value(right, knobs)
            match op:
                case ast.Add():
                    return a_value + b_value
                case ast.Sub():
                    return a_value - b_value
                case ast.Mult():
                    return a_value * b_value
                case ast.FloorDiv():
                    return a_value // b_value
    raise AssertionError(f"not a formula: {ast.dump(node)}")


@given(st.integers(), st.integers(), st.integers(1))
def test_evaluates_like_python(a: int, b: int, c: int) -> None:
    x, y, z = knob("x"), knob("y"), knob("z")
    knobs = {"x": a, "y": b, "z": c}
    assert (x + y).evaluate(knobs) == a + b
    assert (x - y).evaluate(knobs) == a - b
    assert (x * y).evaluate(knobs) == a * b
    assert (x // z).evaluate(knobs) == a // c
    assert ceil_div(x, z).evaluate(knobs) == -(-a // c)
    assert maximum(x, y).evaluate(knobs) == max(a, b)
    assert minimum(x, y).evaluate(knobs) == min(a, b)
    assert (3 + x).evaluate(knobs) == 3 + a
    assert (3 - x).evaluate(knobs) == 3 - a
    assert (3 * x).evaluate(knobs) == 3 * a


@given(sizes, knob_values)
def test_the_printed_formula_computes_the_same(s: Size, knobs: dict[str, int]) -> None:
    assert read(str(s), knobs) == s.evaluate(knobs)


@given(st.dictionaries(st.text(max_size=5), sizes, max_size=4), knob_values)
def test_compiled_sizes_compute_the_same(named: dict[str, Size], knobs: dict[str, int]) -> None:
    assert compile_sizes(named)(knobs) == {name: s.evaluate(knobs) for name, s in named.items()}


@given(st.lists(sizes, max_size=9), knob_values)
def test_a_total_is_the_sum(parts: list[Size], knobs: dict[str, int]) -> None:
    assert total(parts).evaluate(knobs) == sum(p.evaluate(knobs) for p in parts)


def test_a_total_of_very_many_sizes_still_compiles() -> None:
    whole = total(knob(f"k{i}") * 3 + 1 for i in range(2000))
    knobs = {f"k{i}": i for i in range(2000)}
    assert compile_sizes({"all": whole})(knobs) == {"all": whole.evaluate(knobs)}


@pytest.mark.parametrize(
    ("s", "text"),
    [
        (4 * knob("n_steps") * 84, "n_steps * 336"),
        (ceil_div(knob("n_steps") + 1, 4), "ceil((n_steps + 1) / 4)"),
        (ceil_div(knob("a"), knob("b") * 2), "ceil(a / (b * 2))"),
        (knob("a") - (knob("b") - 1), "a - (b - 1)"),
        (maximum(knob("a"), 1024), "max(a, 1,024)"),
        (knob("a") + -3, "a - 3"),
        (knob("a") - -3, "a + 3"),
        (knob("a") * 0 + 5, "5"),
    ],
)
def test_formulas_read_as_a_person_writes_them(s: Size, text: str) -> None:
    assert str(s) == text


def test_names_and_numbers_become_sizes() -> None:
    assert size("n_envs") == knob("n_envs")
    assert size(3) == const(3)
    assert size(knob("a")) == knob("a")


READ = between_readings(knob("n"), {100: 50, 20: 10, 40: 90})


def test_readings_are_printed_as_what_was_read() -> None:
    assert str(READ + 7) == "readings(n; 20: 10; 40: 90; 100: 50) + 7"
    assert READ.knobs == {"n"}


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        *[(20, 10), (40, 90), (100, 50)],  # as they were read
        *[(30, 50), (70, 70)],  # half-way between them
        *[(19, 9), (10, 5), (0, 0)],  # in proportion to the first
        *[(101, 50), (10_000, 50)],  # the last one falls, and stays
    ],
)
def test_between_readings_lie_straight_lines(at: int, expected: int) -> None:
    assert READ.evaluate({"n": at}) == expected
    assert compile_sizes({"it": READ})({"n": at}) == {"it": expected}


def test_a_line_that_rises_goes_on() -> None:
    assert between_readings(knob("n"), {1: 0, 2: 5}).evaluate({"n": 11}) == 50


def test_one_value_is_a_constant() -> None:
    assert between_readings(knob("n"), {4: 9}) == const(9)
    assert between_readings(knob("n"), {4: 9, 8: 9}) == const(9)
    assert between_readings(const(6), {4: 9, 8: 19}) == const(14)
