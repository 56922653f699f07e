"""Whole programs: they stay within their limit, say why not, and leave nothing behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import optuna
import pytest

from memfit.systems.trader.__main__ import arguments, settings_of
from memfit.systems.trader.settings import Settings
from memfit.systems.trader.study import Study, command, space_of
from memfit.tracking.side_by_side import end_with_workers, held, tree
from memfit.units import parse_bytes

pytestmark = [pytest.mark.truth, pytest.mark.timeout(400)]

MIB, GIB = 2**20, 2**30
SMALL = Settings(width=64, batch=256, threads=1, workers=1, iterations=1, epochs=1, steps=256)
PROGRAM = [sys.executable, "-m", "memfit.systems.trader", "--device", "cpu"]
CALM = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE"}


def program(*options: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *options],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=folder,
        env=CALM,
        check=False,
    )


def study_of(settings: Settings, folder: Path, limit: int, said: list[str] | None = None) -> Study:
    return Study(
        settings, limit=limit, folder=folder, say=(said if said is not None else []).append
    )


def test_the_command_of_a_trial_is_the_program_itself(tmp_path: Path) -> None:
    settings = replace(SMALL, never_done=True, prices="p.csv", learning_rate=0.5)
    words = command(settings, space_of(settings))
    assert words[1:8] == [*PROGRAM[1:3], "--trials", "0", "--quiet", "--limit", "{share}"]
    told = [word.format(width=32, batch=16, threads=3, workers=2, share="2GiB") for word in words]
    options = arguments(told[3:])
    asked = replace(settings, width=32, batch=16, threads=3, workers=2, prices=options.prices.name)
    assert replace(settings_of(options), prices="p.csv", rows=settings.rows) == asked
    assert options.limit == "2GiB" and options.trials == 0


def test_a_space_ends_at_the_largest_that_is_allowed() -> None:
    space = space_of(replace(SMALL, width=300, batch=128, threads=3, workers=0))
    assert space["width"].choices == (32, 64, 128, 256, 300)  # type: ignore[attr-defined]
    assert space["batch"].choices == (128,)  # type: ignore[attr-defined]
    assert (space["threads"].low, space["threads"].high) == (1, 3)  # type: ignore[attr-defined]
    assert (space["workers"].low, space["workers"].high) == (0, 0)  # type: ignore[attr-defined]


@pytest.mark.slow
def test_a_study_prunes_what_does_not_fit_and_says_why(tmp_path: Path) -> None:
    """Width 2048 alone is 100 MiB of weights, gradients and state more than width 32."""
    before = set(tree(os.getpid()))
    wide = replace(SMALL, width=2048, batch=128, threads=1)
    study = study_of(wide, tmp_path, GIB)
    small, large = (
        study.bounded.ask(width=width, batch=128, threads=1, workers=1) for width in (32, 2048)
    )
    assert large.lower_bytes > small.upper_bytes
    own = GIB - study.bounded.room.usable
    study.bounded.room.limit = own + (small.upper_bytes + large.lower_bytes) // 2
    for width in (32, 2048):
        study.study.enqueue_trial({"width": width, "batch": 128, "threads": 1, "workers": 1})
    fits, beyond = study.run(2).trials
    assert fits.state.name == "COMPLETE" and beyond.state.name == "PRUNED"
    assert 0 < fits.user_attrs["peak_bytes"] <= fits.user_attrs["share_bytes"]
    assert fits.user_attrs["share_bytes"] == small.upper_bytes
    assert "it would need" in beyond.user_attrs["reason"]
    assert beyond.user_attrs["row_bytes"] > 0 and "peak_bytes" not in beyond.user_attrs
    assert set(tree(os.getpid())) <= before


@pytest.mark.slow
def test_a_trial_that_fails_is_told_and_the_study_goes_on(tmp_path: Path) -> None:
    study = study_of(replace(SMALL, device="nowhere"), tmp_path, 4 * GIB)
    for trial in study.run(2).trials:
        assert trial.state is optuna.trial.TrialState.FAIL
        assert "there is no device 'nowhere'" in trial.user_attrs["reason"]


@pytest.mark.slow
def test_a_study_prints_its_table_and_leaves_no_file(tmp_path: Path) -> None:
    done = program(
        *("--trials", "2", "--iterations", "1", "--epochs", "1", "--width", "64"),
        *("--limit", "2GiB"),
        folder=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "trial 0 begins" in done.stderr
    assert "best: trial" in done.stdout
    assert re.search(r"limit 2.00 GiB, at most [12] trials? side by side", done.stdout)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_described_rollout_that_never_ends_grows_to_its_limit(tmp_path: Path) -> None:
    done = program(
        *("--trials", "0", "--as-described", "--never-done", "--workers", "0"),
        *("--threads", "1", "--width", "768", "--limit", "380MiB", "--steps", "256", "--quiet"),
        folder=tmp_path,
    )
    assert done.returncode == 3, done.stdout + done.stderr
    found = re.search(r"had ([\d,]+) steps and grew by ([\d,]+) bytes a step", done.stdout)
    assert found is not None
    steps, bytes_a_step = (int(text.replace(",", "")) for text in found.groups())
    assert steps > 2000, "long past the 256 that a rollout was asked for"
    assert 2_000 < bytes_a_step < 20_000


@pytest.mark.slow
def test_the_same_env_made_to_fit_holds_what_it_held(tmp_path: Path) -> None:
    def peak(*options: str) -> int:
        done = program(
            *("--trials", "0", "--iterations", "4", "--epochs", "1", "--workers", "0"),
            *("--threads", "1", "--quiet", *options),
            folder=tmp_path,
        )
        assert done.returncode == 0, done.stderr
        if options:
            assert "did not say done within 672 steps: ended" in done.stdout
        return parse_bytes(re.search(r"peak (\S+ \S+) with", done.stdout)[1])  # type: ignore[index]

    assert abs(peak("--never-done") - peak()) < 8 * MIB


def test_a_training_beyond_its_limit_is_not_begun(tmp_path: Path) -> None:
    done = program("--trials", "1", "--limit", "200MiB", folder=tmp_path)
    assert done.returncode == 3
    assert done.stdout.startswith("does not fit: this training would need")


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(["--trials", "2", "--limit", "3GiB"], marks=pytest.mark.slow),
        ["--trials", "0"],
        pytest.param(
            ["--trials", "0", "--as-described", "--threads", "1", "--workers", "1"],
            marks=pytest.mark.slow,
        ),
    ],
    ids=["study", "fitted", "described"],
)
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL], ids=["ctrl-c", "killed"])
def test_no_process_outlives_the_program(
    options: list[str], end: signal.Signals, tmp_path: Path
) -> None:
    command = [*PROGRAM, *options, "--iterations", "100000", "--steps", "512"]
    child: subprocess.Popen[Any] = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=tmp_path,
        env=CALM,
        start_new_session=True,
    )
    try:
        assert child.stdout is not None
        for line in child.stdout:
            if "begins" in line or "iteration" in line:
                break
        until = time.monotonic() + 30
        while not (below := tree(child.pid)[1:]) and time.monotonic() < until:
            time.sleep(0.02)  # a trial that begins has no process yet
        child.send_signal(end)
        said = child.communicate(timeout=60)[0]
    finally:
        end_with_workers(child)
    assert below
    assert child.returncode == (130 if end is signal.SIGINT else -signal.SIGKILL)
    if end is signal.SIGINT:
        assert "stopped" in said and "Traceback" not in said
    until = time.monotonic() + 20
    while any(held([pid]).total for pid in below) and time.monotonic() < until:
        time.sleep(0.02)
    assert not any(held([pid]).total for pid in below)
    assert not list(tmp_path.iterdir())
