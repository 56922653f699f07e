"""Levels are read as they are drawn, and what is wrong with one is said in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memfit.errors import UsageError
from memfit.systems.ninja.fields import build_fields, cell_of
from memfit.systems.ninja.level import FAR, centre, generate, load, parse, shipped
from memfit.systems.ninja.sizes import COLUMNS, MINES, ROWS

SMALL = "@.S\n..E\n###"


def test_a_drawing_lies_in_the_upper_left_corner_in_rock() -> None:
    level = parse("; a remark\n@*S\n.oE\n", name="small")
    assert (level.start, level.switch, level.exit) == ((0, 0), (2, 0), (2, 1))
    assert [(mine.tile, mine.toggles) for mine in level.mines] == [((1, 0), False), ((1, 1), True)]
    assert len(level.rows) == ROWS and {len(row) for row in level.rows} == {COLUMNS}
    assert level.solid.shape == (COLUMNS + 2, ROWS + 2)
    assert (~level.solid).sum() == 6
    assert not level.solid[1:4, 1:3].any()
    assert not level.solid.flags.writeable


@pytest.mark.parametrize(
    ("drawing", "told"),
    [
        ("@.S\n...", "has no exit: draw one E"),
        ("@.E", "has no switch: draw one S"),
        ("S.E", "has no start: draw one @"),
        ("@SEE", "has 2 of E .exit.: draw one"),
        ("", "is empty: draw it with"),
        ("\n; only a remark\n", "is empty"),
        ("@SE\n.x.", "line 2 of the drawing, column 2: 'x' means nothing"),
        ("@SE" + "." * 40, "has 43 x 1 tiles: draw at most 42 x 23"),
        ("@SE\n" + ".\n" * 23, "has 3 x 24 tiles"),
        ("@S#E", "walls part the exit from the start"),
        ("@#S\n.#E", "walls part the switch from the start"),
        ("@SE\n" + ("*" * 33 + "\n") * 4, f"has 132 mines: draw at most {MINES}"),
    ],
)
def test_what_is_wrong_with_a_level_is_said(drawing: str, told: str) -> None:
    with pytest.raises(UsageError, match=f"level bad.*{told}"):
        parse(drawing, name="bad")


def test_levels_are_found_by_name_by_path_and_by_seed(tmp_path: Path) -> None:
    assert {"first-steps", "climb", "minefield"} <= set(shipped())
    for name in shipped():
        assert load(name).name == name
    own = tmp_path / "own.txt"
    own.write_text(SMALL)
    assert load(str(own)).rows == parse(SMALL, name="x").rows
    assert load("generated:3") == generate(3)


def test_files_that_are_no_levels_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no level 'nowhere'.*first-steps"):
        load("nowhere")
    with pytest.raises(UsageError, match="cannot be read"):
        load(str(tmp_path))
    picture = tmp_path / "picture.txt"
    picture.write_bytes(b"\xff\xfe\x00\x80")
    with pytest.raises(UsageError, match="is no text"):
        load(str(picture))
    with pytest.raises(UsageError, match="give a level such as generated:7"):
        load("generated:many")


@given(seed=st.integers(0, 2**32), mines=st.integers(0, 200))
def test_every_generated_level_can_be_read_and_has_its_mines(seed: int, mines: int) -> None:
    level = generate(seed, mines=mines)  # parse() checks the ways
    assert len(level.mines) <= min(mines, MINES)
    assert level == generate(seed, mines=mines)


def test_levels_may_have_128_mines() -> None:
    full = "@SE\n" + ("*" * 32 + "\n") * 4
    assert len(parse(full, name="full").mines) == MINES


def test_fields_count_the_way_around_walls() -> None:
    level = parse("@.S\n.##\n..E", name="around")
    fields = build_fields(level)
    assert fields.to_switch[cell_of(*centre(level.switch))] == 0
    assert fields.to_exit[cell_of(*centre(level.exit))] == 0
    # Two tiles of four cells each to the side, then two down, then two to the side again.
    assert fields.to_switch[cell_of(*centre(level.start))] == 8
    assert fields.between == fields.to_switch[cell_of(*centre(level.exit))]
    assert fields.between >= 20
    assert fields.to_exit[100, 80] == FAR
