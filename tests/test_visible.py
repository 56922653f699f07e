"""What others wrote cannot steer a terminal, in whatever form memfit shows it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing import shared_memory
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memfit.cli.app import main
from memfit.errors import UsageError, visible, visible_line
from memfit.render import Block, Heading, Text, to_markdown
from memfit.render.blocks import Bar, Bars, Column, Table
from memfit.render.terminal import to_text
from tests.measure.record import crafted_recordings

EVIL = "a\x1b[2J\x1b]0;title\x07b\x9b31m\u202etxt\rmemfit: fine\x7f\u2028c"
SHOWN = r"a\x1b[2J\x1b]0;title\x07b\x9b31m\u202etxt\rmemfit: fine\x7f\u2028c"
Captured = pytest.CaptureFixture[str]


def harmless(page: str) -> bool:
    """Whether there is nothing in a page but text, tabs and ends of lines."""
    return all(c.isprintable() or c in "\n\t" for c in page)


def words(page: str) -> str:
    """A page without what lines, tables and Markdown add."""
    return page.replace("\\\\", "\\").replace("\\[", "[").replace("\n", "")


def test_control_characters_are_shown_as_python_writes_them() -> None:
    assert visible(EVIL) == SHOWN
    assert visible("two\n\tlines, ünïcödé \U0001f600") == "two\n\tlines, ünïcödé \U0001f600"
    assert visible_line("two\n\tlines") == r"two\n\tlines"
    assert visible("\ud800") == r"\ud800"


def all_blocks(text: str) -> list[Block]:
    """A text wherever there are texts."""
    columns = (Column(name=text, code=True), Column(name="b"))
    return [
        Heading(text),
        Text(text),
        Table(columns=columns, rows=((text, text),)),
        Bars(bars=(Bar(label=text, amount="1 B", share=1.0),)),
    ]


@given(st.text(st.characters(exclude_categories=()), max_size=30))
def test_whatever_a_text_is_its_blocks_are_harmless(text: str) -> None:
    blocks = all_blocks(text)
    assert to_markdown(blocks).count("\n") == to_markdown(all_blocks("a")).count("\n")
    for page in (to_markdown(blocks), to_text(blocks, width=200), str(UsageError(text))):
        assert not any((ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160 for c in page)
        page.encode()  # halves of characters would fail


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A recording with such words wherever there are words."""
    path = tmp_path / "run.db"
    crafted_recordings.good(path)
    row = {"kind": "heap", "place": "workers", "reserved": None, "bytes": 2**30}
    with crafted_recordings.opened(path) as file:
        for name, value in (
            ("command", ["python", EVIL]),
            ("limit_source", EVIL),
            ("holders", {EVIL: 2**25}),
            ("exit_code", None),
        ):
            file.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (name, json.dumps(value)))
        file.execute("UPDATE events SET text = ?, kind = 'killed'", (EVIL,))
        rows = json.dumps([{**row, "name": EVIL, "where": EVIL}])
        file.execute("UPDATE ledgers SET rows = ?", (rows,))
    return path


@pytest.mark.parametrize("form", ["terminal", "md"])
@pytest.mark.parametrize(
    "command",
    [
        lambda path: ["explain", path],
        lambda path: ["compare", path, path.replace("run", "other")],
        lambda path: ["watch", path, "--once"],
    ],
    ids=["explain", "compare", "watch"],
)
def test_words_of_a_recording(
    command: Callable[[str], list[str]], form: str, recording: Path, capsys: Captured
) -> None:
    crafted_recordings.good(recording.with_name("other.db"))
    assert main([*command(str(recording)), "--format", form]) == 0
    page = capsys.readouterr().out
    assert harmless(page) and r"\x1b]0;title\x07" in words(page)


def test_lines_of_a_live_view(recording: Path, capsys: Captured) -> None:
    with crafted_recordings.opened(recording) as file:
        file.execute("INSERT OR REPLACE INTO about VALUES ('exit_code', '0')")
    assert main(["watch", str(recording)]) == 0
    assert harmless(capsys.readouterr().out)


def test_names_in_error_messages(tmp_path: Path, capsys: Captured) -> None:
    for words in (["explain", f"{EVIL}.db"], ["compare", EVIL, EVIL], ["plan", f"{EVIL}.toml"]):
        assert main(words) == 2
        err = capsys.readouterr().err
        assert harmless(err) and r"\x1b]0;title\x07" in err, err


@pytest.mark.parametrize("form", ["terminal", "md"])
def test_command_lines_and_names_of_shared_memory(form: str, capsys: Captured) -> None:
    """Of a real process, whose command and shared memory are named to steer a terminal."""
    block = shared_memory.SharedMemory(f"memfit\x1b[2J{time.time_ns()}", create=True, size=2**20)
    script = (
        "import mmap, os, sys; file = os.open(sys.argv[1], os.O_RDWR)\n"
        "held = mmap.mmap(file, 2**20); held.write(b'x' * 2**20)\n"
        "print('ready', flush=True); input()"
    )
    command = [sys.executable, "-S", "-c", script, f"/dev/shm/{block.name}", EVIL]
    try:
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            assert main(["explain", str(process.pid), "--format", form]) == 0
            process.communicate("\n", timeout=60)
    finally:
        block.close()
        block.unlink()
    page = capsys.readouterr().out
    assert harmless(page)
    assert r"memfit\x1b[2J" in words(page) and r"\x1b]0;title\x07" in words(page)
