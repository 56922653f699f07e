"""The profiling flags of the assessment call `memfit profile`, and write its two files."""

from __future__ import annotations

from pathlib import Path

import pytest

from memfit.model.json_loader import to_json
from memfit.systems.ninja.__main__ import REPORT, STATS, main
from memfit.systems.ninja.env import configured
from memfit.systems.ninja.settings import EnvironmentConfig, Memory


def test_the_assessments_command_writes_its_two_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    command = "--headless --profile-memory --profile-frames 60 --memory-snapshot-interval 6"
    assert main([*command.split(), "--quiet"]) == 0
    assert {file.name for file in tmp_path.iterdir()} == {REPORT, STATS}
    assert REPORT == "memory_profiling_report.txt" and STATS == "profiling_stats.txt"
    report = (tmp_path / REPORT).read_text()
    assert "no leak" in report and "memfit.systems.ninja.env.NinjaEnv" in report
    assert "cumulative" in (tmp_path / STATS).read_text()
    said = capfd.readouterr()
    assert "no leak" in said.out and not said.err


def test_times_alone_and_another_folder(tmp_path: Path) -> None:
    options = ["--profile-frames", "5", "--output", str(tmp_path), "--quiet", "--n-envs", "2"]
    assert main(options) == 0
    assert [file.name for file in tmp_path.iterdir()] == [STATS]


def test_a_configuration_comes_back_from_its_json() -> None:
    config = EnvironmentConfig.as_described(graphs="arrays", memory=Memory.only("shared_spaces"))
    assert configured(to_json(config)).config == config


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--profile-frames", "0"], "--profile-frames is 0: give 1 or more"),
        (["--profile-memory", "--memory-snapshot-interval", "0"], "interval is 0: give 1 or more"),
        (["--profile-memory", "--n-envs", "0"], "--n-envs is 0: give 1 or more"),
        (["--profile-memory", "--output", "missing"], "give another --output"),
        (["--profile-memory", "--level", "nowhere"], "there is no level 'nowhere'"),
    ],
)
def test_what_cannot_be_profiled_is_refused(
    options: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*options, "--quiet"]) == 2
    said = capsys.readouterr()
    assert told in said.err and said.err.count("\n") == 1 and not said.out
