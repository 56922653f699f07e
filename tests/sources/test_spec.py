"""Run specs: the shipped ones parse, and a wrong one is told what is wrong and where."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import memfit
from memfit.errors import MemfitError, SpecError, Unsupported
from memfit.model.expression import parse_size
from memfit.sources import spec

SHIPPED = sorted((Path(memfit.__file__).parent / "specs").glob("*.toml"))


def test_there_is_a_spec_for_each_system() -> None:
    assert [path.stem for path in SHIPPED] == ["drone", "fighter", "ninja", "trader"]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_spec_is_read(path: Path) -> None:
    facts = spec.load(path)
    assert facts["name"] == path.stem
    assert all(value > 0 for value in facts["knobs"].values() if isinstance(value, int))


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ("batch_size = 2048", "batch_size = -1"),
        ("batch_size = 2048", "batch_size = 'many'"),
        ("batch_size = 2048", "batch_sise = 2048"),
        ("n_steps = 8192", f"n_steps = {2**50}"),
        ("schema = 1", "schema = 99"),
    ],
)
def test_a_wrong_spec_is_refused_by_name(change: str, word: str, tmp_path: Path) -> None:
    fighter = next(path for path in SHIPPED if path.stem == "fighter").read_text()
    assert change in fighter
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(fighter.replace(change, word, 1))
    with pytest.raises(SpecError, match=r"wrong\.toml"):
        spec.load(wrong)


def test_an_unknown_library_and_broken_toml_are_refused(tmp_path: Path) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("schema = [")
    with pytest.raises(SpecError):
        spec.load(broken)
    other = tmp_path / "other.toml"
    other.write_text('schema = 1\nname = "x"\nlibrary = "no-such-library"\n')
    with pytest.raises(Unsupported, match="torch"):
        spec.load(other)
    with pytest.raises(MemfitError):
        spec.load(tmp_path / "missing.toml")


@given(a=st.integers(1, 10**6), b=st.integers(1, 10**6), c=st.integers(1, 1000))
def test_an_expression_means_what_python_says(a: int, b: int, c: int) -> None:
    for text in ("a * b + c", "a * (b + c)", "a // c + b", "(a + b) // c * 7", "a + 2 * b - c"):
        knobs = {"a": a, "b": b, "c": c}
        assert parse_size(text, knobs).evaluate(knobs) == eval(text, {}, knobs)
