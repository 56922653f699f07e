"""`memfit watch` where no terminal is: one frame in each format, lines, and how it ends."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memfit.cli import main
from memfit.model import Frame
from memfit.render import frame_json, frame_line
from tests.samples_live import frame


class View:
    """Stands for what `memfit.api.watch` looks at: frames that end with the last one."""

    def __init__(self, *frames: Frame) -> None:
        self.frames = list(frames)

    def frame(self) -> Frame:
        return self.frames.pop(0)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> View:
    view = View(frame(), replace(frame(), ended=True))

    def watch(targets: list[str], **options: Any) -> View:
        return view

    monkeypatch.setattr("memfit.api.watch.watch", watch)
    return view


def test_one_frame_as_json_says_that_a_target_is_missed(
    shown: View, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["watch", "4711", "--once", "--format", "json"]) == 3
    assert json.loads(capsys.readouterr().out) == frame_json(frame())


def test_a_frame_whose_targets_are_met_ends_with_0(
    shown: View, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown.frames = [replace(frame(), targets=())]
    file = tmp_path / "frame.md"
    assert main(["watch", "4711", "--once", "--format", "md", "-o", str(file)]) == 0
    assert "## Processes" in file.read_text(encoding="utf-8")
    assert capsys.readouterr().out == ""


def test_without_a_terminal_it_prints_lines_until_the_end(
    shown: View, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["watch", "4711", "--every", "1ms"]) == 0
    ended = replace(frame(), ended=True)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [frame_line(frame()), frame_line(ended)]
    assert lines[2].startswith("peak 99.0 MiB after 99 s") and lines[-1].startswith("verdict: leak")


def test_a_format_is_for_one_frame(shown: View, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", "4711", "--format", "json"]) == 2
    assert "--once" in capsys.readouterr().err
    assert len(shown.frames) == 2
