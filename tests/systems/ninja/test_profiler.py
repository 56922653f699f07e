"""The profiler writes its reports, finds leaks, and does not itself grow."""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memfit.systems.ninja import profiler
from memfit.systems.ninja.__main__ import main
from memfit.systems.ninja.profiler import REPORT, ROOM, STATS, FrameReadings, Profiler, report_of
from memfit.systems.ninja.settings import EnvironmentConfig, Memory

FITTED = EnvironmentConfig.for_parallel_training()


@given(offered=st.integers(0, 5_000), room=st.integers(2, 40))
def test_readings_stay_in_their_room_and_span_the_run(offered: int, room: int) -> None:
    readings = FrameReadings(room)
    held = readings.rows.nbytes
    for frame in range(offered):
        readings.add(frame, 2 * frame, 3 * frame)
    rows = readings.rows[: readings.count]
    assert readings.rows.nbytes == held and readings.count <= room
    assert (np.diff(rows[:, 0]) > 0).all()
    assert (rows[:, 1] == 2 * rows[:, 0]).all() and (rows[:, 2] == 3 * rows[:, 0]).all()
    if offered:
        assert rows[0, 0] == 0
        assert offered - rows[-1, 0] <= readings.every
        assert readings.count >= min(offered, room // 2)
    if readings.count >= 4:
        assert readings.growth() == pytest.approx(2.0)


def test_many_snapshots_hold_no_more_than_few(monkeypatch: pytest.MonkeyPatch) -> None:
    # Reading the whole of a large process is slow; its result is a number like another.
    monkeypatch.setattr(profiler, "resident", time.monotonic_ns)

    def held(frames: int) -> int:
        readings = FrameReadings()
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for frame in range(frames):
            readings.add(frame, tracemalloc.get_traced_memory()[0], profiler.resident())
        gc.collect()
        after = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        return after - before

    held(2 * ROOM)  # first uses, of dropping readings too
    assert held(8 * ROOM) <= held(10) + 1024  # half a byte a reading


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.usefixtures("traced")
def test_a_whole_profile_finds_the_environment_flat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiler, "resident", lambda: 0)  # slow to read, and not in question
    readings, first, last = Profiler(FITTED, n_envs=2, seed=0).memory(600, 1, lambda *_: None)
    assert readings.count <= ROOM < readings.offered == 600
    assert not readings.leaking()
    assert abs(sum(last.values()) - sum(first.values())) < 64 << 10


@pytest.mark.usefixtures("traced")
def test_a_leak_is_found_and_its_line_is_named() -> None:
    made = Profiler(FITTED, n_envs=1, seed=0)
    kept = []
    plain = made.frame

    def leaking() -> None:
        plain()
        kept.append(bytes(1000))

    made.frame = leaking  # type: ignore[method-assign]
    readings, first, last = made.memory(200, 1, lambda *_: None)
    assert 900 < readings.growth() < 1300 and readings.leaking()
    text = report_of(readings, first, last, frames=200, n_envs=1, built=0)
    assert f"LEAK: every frame adds {readings.growth():,.0f} bytes" in text
    grown = text.split("grew the most")[1]
    assert "ninja/test_profiler.py" in grown.splitlines()[1]


def test_the_assessments_command_writes_its_two_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    command = "--headless --profile-memory --profile-frames 60 --memory-snapshot-interval 6"
    assert main([*command.split(), "--quiet"]) == 0
    assert {file.name for file in tmp_path.iterdir()} == {REPORT, STATS}
    assert REPORT == "memory_profiling_report.txt" and STATS == "profiling_stats.txt"
    report = (tmp_path / REPORT).read_text()
    assert (
        "environments: 1; frames of random actions: 60" in report and "verdict: no leak" in report
    )
    table = report.split("resident\n", 1)[1].split("\n\n")[0]
    rows = [line.split() for line in table.splitlines()]
    assert [int(row[0]) for row in rows] == list(range(6, 61, 6))
    assert "cumulative" in (tmp_path / STATS).read_text()
    said = capsys.readouterr()
    assert "verdict: no leak" in said.out and not said.err


def test_times_alone_and_another_folder(tmp_path: Path) -> None:
    options = ["--profile-frames", "5", "--output", str(tmp_path), "--quiet", "--n-envs", "2"]
    assert main(options) == 0
    assert [file.name for file in tmp_path.iterdir()] == [STATS]


def test_a_described_environment_with_graphs_can_be_profiled(tmp_path: Path) -> None:
    config = EnvironmentConfig.as_described(graphs="arrays", memory=Memory.only("shared_spaces"))
    files = profiler.profile(
        config, n_envs=1, frames=3, interval=1, memory=True, output=tmp_path, seed=0
    )
    assert [file.name for file in files] == [REPORT, STATS]
    assert "graph.py" in files[0].read_text()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--profile-frames", "0"], "--profile-frames is 0: give 1 or more"),
        (["--profile-memory", "--memory-snapshot-interval", "0"], "interval is 0: give 1 or more"),
        (["--profile-memory", "--n-envs", "0"], "--n-envs is 0: give 1 or more"),
        (["--profile-memory", "--output", "missing"], "make it first"),
        (["--profile-memory", "--level", "nowhere"], "there is no level 'nowhere'"),
    ],
)
def test_what_cannot_be_profiled_is_refused(
    options: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*options, "--quiet"]) == 2
    said = capsys.readouterr()
    assert told in said.err and said.err.count("\n") == 1 and not said.out
