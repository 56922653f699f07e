"""Sweeps run real commands, end at the limit, and find the line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import ClassVar

import pytest

from memfit.api.sweep import parse_over, sweep
from memfit.cli import main
from memfit.errors import UsageError
from memfit.model import Outcome, Point, SweepStep

MIB = 2**20
HOLD = "import sys, time; block = bytearray(int(sys.argv[1]) * 2**20); time.sleep(0.2)"
COMMAND = [sys.executable, "-c", HOLD, "{mib}"]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("n=1,10,100", [1, 10, 100]),
        ("n=100,1", [1, 100]),
        ("n=1..8", [1, 2, 4, 8]),
        ("n=1..20", [1, 2, 4, 8, 16, 20]),
        ("n=5..5", [5]),
    ],
)
def test_values(text: str, values: list[int]) -> None:
    assert parse_over(text) == ("n", values)


@pytest.mark.parametrize(
    "text", ["n", "n=", "n=0", "n=-1", "n=a", "=1", "1=2", "n=9..1", "n=1..", "n=1,,2"]
)
def test_values_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="such as agents=100,1000"):
        parse_over(text)


def test_a_sweep_finds_the_line_and_one_row_beyond_the_limit() -> None:
    told: list[SweepStep] = []
    result = sweep(COMMAND, over="mib=20,60,100,400,500", limit=200 * MIB, watching=told.append)
    assert [p.outcome for p in result.points] == [Outcome.DONE] * 3 + [Outcome.OUT_OF_MEMORY]
    assert result.line is not None
    assert abs(result.line.bytes_per_unit - MIB) < 0.05 * MIB
    assert 0 < result.line.fixed_bytes < 40 * MIB
    assert {(step.number, step.of) for step in told} == {(i, 5) for i in (1, 2, 3, 4)}
    assert max(step.peak_bytes for step in told if step.value == 100) > 100 * MIB
    name, (room, value) = next(iter(result.largest.items()))
    assert name == "laptop-8gb"
    assert abs(value - room / MIB) < 0.05 * room / MIB


def test_json_and_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sweep", "--over", "mib=10,20", "--format", "json", "-q", "--on", "1GiB"]
    assert main([*words, "--", *COMMAND]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["schema"], told["kind"], told["over"]) == (1, "sweep", "mib")
    assert [p["value"] for p in told["points"]] == [10, 20]
    assert set(told["fit"]) == {"fixed_bytes", "bytes_per_unit", "low", "high"}
    assert told["capacity"][0]["hardware"] == "1GiB"
    assert main([*words, "--", sys.executable, "-c", "raise SystemExit({mib})"]) == 1
    capsys.readouterr()
    assert main([*words, "--", "true"]) == 2
    assert "does not use {mib}" in capsys.readouterr().err


def test_the_table_shows_it(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sweep", "--over", "mib=10,50,9000", "--limit", "300MiB", "-q"]
    assert main([*words, "--", *COMMAND]) == 0
    out = capsys.readouterr().out
    assert "out of memory" in out and "fixed, and" in out and "laptop-16gb" in out


def test_a_sweep_that_was_killed_goes_on(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    command = [sys.executable, "-c", f"open({str(runs)!r}, 'a').write('{{n}} ')"]

    def end(step: SweepStep) -> None:
        if step.outcome is not None and step.value == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(command, over="n=1,2,3", watching=end)
    told: list[str] = []
    result = sweep(command, over="n=1,2,3", progress=told.append)
    assert [p.value for p in result.points] == [1, 2, 3]
    assert runs.read_text() == "1 2 3 "
    assert told == ["going on after 2 runs of an earlier sweep (--fresh begins anew)"]
    sweep(command, over="n=1,2,3")  # a complete one is not kept
    assert runs.read_text() == "1 2 3 1 2 3 "
    assert not list((tmp_path / "cache").rglob("*.json"))


def test_a_killed_sweep_can_begin_anew(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    command = [sys.executable, "-c", f"open({str(runs)!r}, 'a').write('{{n}} ')"]

    def end(step: SweepStep) -> None:
        if step.outcome is not None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(command, over="n=1,2", watching=end)
    sweep(command, over="n=1,2", fresh=True)
    assert runs.read_text() == "1 1 2 "


class Shared:
    """Runs whose libraries others map as well, all but a small part of the first one's."""

    facts: ClassVar[dict[str, str]] = {"runner": "shared"}

    def run(self, value: int, **_: object) -> Point:
        outside = MIB if value == 1 else 30 * MIB
        return Point(
            value=value,
            peak_bytes=200 * MIB,
            outcome=Outcome.DONE,
            seconds=0.1,
            outside_bytes=outside,
        )

    def plan(self, _: object) -> tuple[None, tuple[str, ...]]:
        return None, ()


def test_a_sweep_says_what_it_adds_to_pss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memfit.api.sweep.runner_of", lambda *_, network: Shared())
    (note,) = sweep(["any"], over="n=1,2").notes
    assert "30.0 MiB" in note and "alone on this machine" in note
    assert sweep(["any"], over="n=1").notes == ()
