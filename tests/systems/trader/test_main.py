"""The command line says what it does, refuses what cannot work, and its specs can be planned."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.systems.trader.price_files import write_prices

from memfit.systems.trader.__main__ import arguments, main, settings_of
from memfit.systems.trader.market import rows_needed, synthetic
from memfit.systems.trader.settings import COINS

SMALL = ["--trials", "0", "--iterations", "1", "--device", "cpu", "--quiet", "--workers", "0"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--trials", "-1"], "--trials is -1: give 0 or more"),
        (["--width", "0"], "--width is 0: give 1 or more"),
        (["--batch", "0"], "--batch is 0"),
        (["--threads", "0"], "--threads is 0"),
        (["--workers", "-1"], "--workers is -1: give 0 or more"),
        (["--iterations", "0"], "--iterations is 0"),
        (["--lookback", "0"], "--lookback is 0"),
        (["--lookback", "99999"], "there are 12000 rows of prices"),
        (["--steps", "3", "--envs", "8"], "give 8 or more"),
        (["--learning-rate", "0"], "give above 0 and below 1"),
        (["--seed", "-1"], "--seed is -1"),
        (["--limit", "much"], "is not an amount of memory"),
        (["--limit", "0"], "--limit is 0"),
        (["--side-by-side", "0"], "--side-by-side is 0"),
        (["--max-seconds", "0"], "--max-seconds is 0"),
        pytest.param(["--device", "nowhere"], "there is no device", marks=pytest.mark.torch),
        (["--as-described", "--envs", "2"], "leave out --envs"),
        (["--prices", "missing.csv"], "there is no file"),
        (["--prices", "prices.txt"], "neither .csv nor .parquet"),
        (["--trials", "3", "--prices", "missing.csv"], "there is no file"),
    ],
)
def test_what_cannot_work_is_refused(
    given: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*SMALL, *given]) == 2
    said = capsys.readouterr()
    assert told in said.err and said.err.count("\n") == 1
    assert not said.out


@pytest.mark.parametrize("trials", ["0", "3"])
@pytest.mark.parametrize("bad", ["nan", "short"])
def test_bad_prices_are_refused(
    bad: str, trials: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prices = synthetic(rows_needed(1) - (bad == "short"), 0)
    if bad == "nan":
        prices[7, 2] = float("nan")
    write_prices(tmp_path / "p.csv", prices)
    assert main([*SMALL, "--trials", trials, "--prices", str(tmp_path / "p.csv")]) == 2
    said = capsys.readouterr().err
    if bad == "nan":
        assert f"{COINS[2]} in data row 8, is missing" in said
    else:
        assert "give a longer file" in said


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    said = " ".join(capsys.readouterr().out.split())
    for part in ("--trials K", "--limit SIZE", "examples:", "as described 768", "--prices FILE"):
        assert part in said


def test_the_described_settings_are_the_assessment_s() -> None:
    settings = settings_of(arguments(["--as-described"]))
    assert (settings.threads, settings.workers, settings.width) == (12, 3, 768)
    assert settings_of(arguments(["--as-described", "--width", "64"])).width == 64


@pytest.mark.slow
@pytest.mark.truth
@pytest.mark.parametrize("spec", ["trader.toml", "trader-fit.toml"])
def test_the_specs_can_be_planned(spec: str, capsys: pytest.CaptureFixture[str]) -> None:
    from memfit.cli import main as memfit

    assert memfit(["plan", spec, "--format", "json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    names = {row["name"] for row in plan["components"]}
    assert any("actor" in name for name in names) and any(
        "rollout" in n or "trajectory" in n for n in names
    )
    assert plan["peak_bytes"] > 0
