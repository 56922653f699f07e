"""The cartridge is what its source gives, and the assembler knows the processor's words."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.systems.fighter.playing import SYMBOLS, of

from memfit.errors import UsageError
from memfit.systems.fighter.cartridge import parse_addresses
from memfit.systems.fighter.rom import build
from memfit.systems.fighter.rom.assembler import Assembler
from memfit.systems.fighter.rom.opcodes import TABLE
from memfit.systems.fighter.rom.pictures import as_tiles, tiles


def bytes_of(text: str) -> bytes:
    program = Assembler(size=512).assemble({"test.asm": text})
    return program.image[: program.end]


def test_the_cartridge_is_what_the_source_gives() -> None:
    assert build.build() == build.CARTRIDGE.read_bytes()


def test_the_header_is_right_and_has_no_logo() -> None:
    image = build.CARTRIDGE.read_bytes()
    assert len(image) == 32 << 10
    total = 0
    for byte in image[0x134:0x14D]:
        total = (total - byte - 1) & 0xFF
    assert image[0x14D] == total
    assert int.from_bytes(image[0x14E:0x150], "big") == (
        sum(image[:0x14E]) + sum(image[0x150:])
    ) % (1 << 16)
    assert image[0x134:0x144].rstrip(b"\0") == b"FIGHTER"
    assert image[0x104:0x134] == bytes(48)  # the logo is not ours to give


def test_the_addresses_are_those_of_the_source() -> None:
    addresses = parse_addresses(build.CARTRIDGE.with_suffix(".toml"))
    assert addresses.reward is not None
    assert addresses.reward.health == of("PLAYER", "HEALTH")
    assert addresses.reward.opponent_health == of("OPPONENT", "HEALTH")
    assert addresses.reward.full_health == SYMBOLS["FULL_HEALTH"]
    assert addresses.state == SYMBOLS["STATE"]
    assert addresses.over == {SYMBOLS["MATCH_OVER"]}
    assert addresses.random == range(SYMBOLS["RANDOM"], SYMBOLS["RANDOM"] + 2)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("nop", "00"),
        ("ld bc, $1234", "01 34 12"),
        ("ld [hl+], a", "22"),
        ("ld b, [hl]", "46"),
        ("ld [hl], 7", "36 07"),
        ("ldh [$FF40], a", "E0 40"),
        ("ldh a, [$44]", "F0 44"),
        ("ld a, [$C001]", "FA 01 C0"),
        ("add 5", "C6 05"),
        ("add hl, de", "19"),
        ("sub [hl]", "96"),
        ("cp %101", "FE 05"),
        ("swap a", "CB 37"),
        ("bit 3, [hl]", "CB 5E"),
        ("set 7, b", "CB F8"),
        ("push af", "F5"),
        ("ret nz", "C0"),
        ("here: jr here", "18 FE"),
        ("jr nc, .on\n nop\n.on: reti", "30 01 00 D9"),
        ("N = 2 * (3 + 4)\ndb N, low($1234), high($1234), -1", "0E 34 12 FF"),
        ("dw 1 << 8 | 2", "02 01"),
        ("one: ds 3\n two: db two - one", "00 00 00 03"),
    ],
)
def test_words_become_bytes(text: str, code: str) -> None:
    assert bytes_of(text) == bytes.fromhex(code)


def test_every_instruction_is_there_once() -> None:
    """The processor has 11 holes, and bits have a form of their own; rst we do without."""
    codes = [instruction.code for instruction in TABLE.values()]
    assert len(set(codes)) == len(codes)
    single = {code[0] for code in codes if len(code) == 1}
    holes = {0xD3, 0xDB, 0xDD, 0xE3, 0xE4, 0xEB, 0xEC, 0xED, 0xF4, 0xFC, 0xFD}
    unused = {0xC7, 0xCF, 0xD7, 0xDF, 0xE7, 0xEF, 0xF7, 0xFF, 0xF8}  # rst, and ld hl, sp + n
    assert single == set(range(256)) - holes - unused - {0x10, 0xCB}
    assert {code[1] for code in codes if code[0] == 0xCB} == set(range(0x40))


@given(st.integers(-200, 200))
def test_relative_jumps_reach_as_far_as_they_can(distance: int) -> None:
    text = f"org 256\nhere: jr here + {distance} + 2".replace("+ -", "- ")
    if -128 <= distance < 128:
        assert bytes_of(text)[-1] == distance & 0xFF
    else:
        with pytest.raises(UsageError, match="use jp"):
            bytes_of(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("nop\n move a, b", r"test\.asm:2: 'move a, b' is no instruction"),
        ("ld a, 256", "does not go into 1 byte"),
        ("ld a, THERE", "'THERE' is no number here: define it"),
        ("ld a, 1 +", "is no number here"),
        ("a1: nop\na1: nop", "a1 is there twice"),
        ("bit 8, a", "a bit from 0 to 7"),
        ("org 511\nld a, 1", "beyond the cartridge's end"),
        ("nop\norg 0\nnop", "where something is already"),
        ('text "A"', "letters that are not drawn: A"),
        ("blob song", "which the build has not made"),
    ],
)
def test_wrong_source_is_refused(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        bytes_of(text)


def test_a_tile_has_low_bits_and_high_bits_of_each_row() -> None:
    rows = np.array([[0, 1, 2, 3, 0, 1, 2, 3]] * 8, np.uint8)
    assert as_tiles(rows) == bytes((0b01010101, 0b00110011)) * 8


def test_every_action_has_its_picture() -> None:
    actions = ("STAND", "WALK", "PUNCH", "KICK", "BLOCK", "HURT", "DOWN")
    assert [SYMBOLS[name] for name in actions] == list(range(len(actions)))
    first, size = SYMBOLS["TILE_FIGHTER"] * 16, 12 * 16
    drawn = [tiles()[at : at + size] for at in range(first, len(tiles()), size)]
    assert len(drawn) == len(set(drawn)) == len(actions) and all(map(any, drawn))


def test_the_source_says_what_it_is_for() -> None:
    for file in (build.HERE / "source").glob("*.asm"):
        assert re.match(r"; [A-Z]", file.read_text(encoding="utf-8"))
        assert file.stem in build.FILES


def test_the_build_writes_the_cartridge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shipped, there = build.CARTRIDGE, tmp_path / "game.gb"
    monkeypatch.setattr(build, "CARTRIDGE", there)
    assert build.main() == 0
    assert there.read_bytes() == shipped.read_bytes()
    assert "game.gb: " in capsys.readouterr().out
    monkeypatch.setattr(build, "CARTRIDGE", tmp_path / "no" / "game.gb")
    assert build.main() == 2
    assert "error: " in capsys.readouterr().err
