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

from memfit.errors import UsageError
from memfit.systems.trader import estimate
from memfit.systems.trader.settings import Settings
from memfit.systems.trader.study import Study
from memfit.tracking.side_by_side import end_with_workers, held, tree
from memfit.units import parse_bytes

pytestmark = [pytest.mark.truth, pytest.mark.timeout(400)]

MIB, GIB = 2**20, 2**30
SMALL = Settings(
    width=64, batch=256, threads=1, workers=1, iterations=1, epochs=1, steps=256, rows=1500
)
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


@pytest.fixture(scope="module")
def base() -> estimate.Base:
    return Study(SMALL, trials=1, limit=4 * GIB).measure_base()


def with_base(study: Study, base: estimate.Base) -> Study:
    study.measure_base = lambda: base  # type: ignore[method-assign]
    return study


@pytest.mark.slow
def test_a_study_prunes_what_does_not_fit_and_says_why(base: estimate.Base) -> None:
    """A limit in which small trials fit, and the widest do not."""
    before = set(tree(os.getpid()))
    wide = replace(SMALL, width=2048)
    own = held([os.getpid()])
    files = max(own.files, base.files)
    fits = estimate.share_bytes(replace(SMALL, width=768), base)
    limit = int((own.private + files + fits) / 0.96)
    study = with_base(Study(wide, trials=4, limit=limit), base)
    done = study.run()
    states = {trial.state.name for trial in done.trials}
    assert len(done.trials) == 4 and states == {"COMPLETE", "PRUNED"}
    for trial in done.trials:
        peak = trial.user_attrs.get("peak_bytes")
        if trial.state.name == "PRUNED":
            assert "it would need" in trial.user_attrs["reason"]
            assert trial.params["width"] > 768 and peak is None
        else:
            assert peak is not None and 0 < peak <= trial.user_attrs["share_bytes"]
            assert "reason" not in trial.user_attrs
    assert 0 < study.peak <= limit
    assert set(tree(os.getpid())) <= before


@pytest.mark.slow
def test_trials_run_side_by_side_as_far_as_they_fit(base: estimate.Base) -> None:
    own = held([os.getpid()])
    share = estimate.share_bytes(SMALL, base)
    fixed = own.private + max(own.files, base.files)
    only = replace(SMALL, width=32, batch=128)  # a study of one choice
    for fit in (1, 2):
        limit = int((fixed + share * (fit + 0.4)) / 0.96)
        study = with_base(Study(only, trials=3, limit=limit), base)
        done = study.run()
        assert [trial.state.name for trial in done.trials] == ["COMPLETE"] * 3
        assert study.most_side_by_side == fit
        assert study.peak <= limit


def test_a_trial_over_its_share_is_stopped_and_the_reason_stored(
    base: estimate.Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimate, "share_bytes", lambda settings, base: 60 * MIB)
    (trial,) = with_base(Study(SMALL, trials=1, limit=4 * GIB), base).run().trials
    assert trial.state is optuna.trial.TrialState.PRUNED
    assert "more than its share of 60.0 MiB" in trial.user_attrs["reason"]


def test_a_trial_that_asks_for_much_at_once_is_refused_before_it_has_it(
    base: estimate.Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An estimate that is far too low: one allocation would go past the share in no time."""
    share = estimate.share_bytes(SMALL, base)
    monkeypatch.setattr(estimate, "share_bytes", lambda settings, base: share)
    huge = replace(SMALL, width=6000, batch=128)
    study = with_base(Study(huge, trials=3, limit=8 * GIB), base)
    monkeypatch.setattr("memfit.systems.trader.study.WIDTHS", ())
    for trial in study.run().trials:
        assert trial.state is optuna.trial.TrialState.PRUNED
        assert "its share" in trial.user_attrs["reason"]
        assert trial.user_attrs["peak_bytes"] < 2 * share
    assert study.peak < 8 * GIB


@pytest.mark.slow
def test_a_trial_whose_episodes_never_end_is_ended_and_says_so(base: estimate.Base) -> None:
    never = replace(SMALL, never_done=True, max_episode=50, envs=2)
    (trial,) = with_base(Study(never, trials=1, limit=4 * GIB), base).run().trials
    assert trial.state is optuna.trial.TrialState.COMPLETE
    assert "did not say done within 50 steps" in trial.user_attrs["rollout"]


def test_a_trial_that_fails_is_told_and_the_study_goes_on(
    base: estimate.Base,
) -> None:
    study = with_base(Study(replace(SMALL, device="nowhere"), trials=2, limit=4 * GIB), base)
    for trial in study.run().trials:
        assert trial.state is optuna.trial.TrialState.FAIL
        assert "there is no device 'nowhere'" in trial.user_attrs["reason"]


def test_time_that_is_up_ends_all_trials(base: estimate.Base) -> None:
    before = set(tree(os.getpid()))
    long = replace(SMALL, iterations=100_000)
    study = with_base(Study(long, trials=2, limit=4 * GIB, max_seconds=4), base)
    trials = study.run().trials
    assert {trial.state.name for trial in trials} == {"PRUNED"}
    assert all("time was up" in trial.user_attrs["reason"] for trial in trials)
    assert set(tree(os.getpid())) <= before


def test_a_limit_below_the_smallest_trial_is_refused() -> None:
    before = set(tree(os.getpid()))
    with pytest.raises(UsageError, match="less than the smallest trial takes"):
        Study(SMALL, trials=2, limit=held([os.getpid()]).total + 80 * MIB).run()
    assert set(tree(os.getpid())) <= before


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
    peak, limit = re.search(r"peak (\S+ \S+) of the limit of (\S+ \S+),", done.stdout).groups()  # type: ignore[union-attr]
    assert parse_bytes(peak) < parse_bytes(limit) == 2 * GIB
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
        below = tree(child.pid)[1:]
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
