"""Whatever happens to a recording, the training that tells it something does not notice."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import memfit
from memfit.measure.record.recording import Recording
from memfit.measure.record.recording_reader import load
from memfit.model import EventKind
from memfit.tracking.gym import MemoryWrapper

SECONDS = 60.0
# Tells all there is to tell, before and after a fault that its argument names.
PROGRAM = """
import resource, shutil, sys, time
import memfit
path, fault = sys.argv[1:]
with memfit.track(path or None) as run:
    for step in range(4):
        if step == 2 and fault == "full":
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        if step == 2 and fault == "removed":
            shutil.rmtree(path.rpartition("/")[0])
        run.phase(f"phase {step}")
        run.step(step)
        run.holders({"array": step})
        run.memory_bytes()
        time.sleep(0.25)
print("trained")
raise SystemExit(5)
"""


def tracked(path: str, fault: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, path, fault],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


@pytest.mark.parametrize("fault", ["full", "removed"])
def test_a_training_outlives_its_recording(fault: str, tmp_path: Path) -> None:
    path = tmp_path / "there" / "own.db"
    path.parent.mkdir()
    done = tracked(str(path), fault)
    assert (done.returncode, done.stdout) == (5, "trained\n"), done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("recording into") == (1 if fault == "full" else 0)


@pytest.mark.parametrize("fault", [pytest.param("locked", marks=pytest.mark.slow), "nonsense"])
def test_a_training_goes_on_where_it_cannot_add_to_a_recording(fault: str, tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    if fault == "nonsense":
        path.write_bytes(b"no recording" * 1000)
    else:
        Recording(path).close()
    if fault != "locked":
        done = tracked("", "none", MEMFIT_RECORDING=str(path))
    else:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            done = tracked("", "none", MEMFIT_RECORDING=str(path))
    assert (done.returncode, done.stdout) == (5, "trained\n"), done.stderr
    assert done.stderr.count("nothing is recorded") == 1 and "Traceback" not in done.stderr


def test_what_cannot_be_told_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with memfit.track(tmp_path / "own.db") as run:
        for _ in range(2):
            run.holders({"array": "many"})  # type: ignore[dict-item]
            run.holders(lambda: 1 / 0)  # type: ignore[arg-type, return-value]
        run.holders({"array": 4})
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert load(tmp_path / "own.db").holders == {"array": 4}


def test_names_and_steps_that_nobody_can_keep_do_not_end_a_recording(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "own.db"
    with memfit.track(path) as run:
        for name in (np.array([1, 2]), Nameless(), "\ud800", "x" * 2**17, "last"):
            run.phase(name)  # type: ignore[arg-type]
        run.step(2**70)
        run.holders(
            {"large": 2**70, "small": 5, "\ud800": 6, **dict.fromkeys(map(str, range(5000)), 0)}
        )
        time.sleep(0.3)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    trace = load(path)
    phases = [event.text for event in trace.events if event.kind is EventKind.PHASE]
    assert phases[1] == r"\ud800" and len(phases[2]) == 2**16 and phases[3] == "last"
    assert trace.holders["small"] == 5 and len(trace.holders) == 2000


class Nameless:
    def __str__(self) -> str:
        raise RuntimeError("not now")


CLOSES = """
import os, sys, time
from pathlib import Path
import memfit
folder = Path(sys.argv[1])
with memfit.track() as run:
    run.phase("before")
    time.sleep(0.5)
    os.closerange(3, 256)
    files = [open(folder / f"file{number}", "wb+", buffering=0) for number in range(20)]
    for file in files:
        file.write(b"of the training")
    for step in range(4):
        run.phase(f"after {step}")
        time.sleep(0.25)
for number, file in enumerate(files):
    os.fstat(file.fileno())
    assert (folder / f"file{number}").read_bytes() == b"of the training", number
print("trained")
"""


def test_files_that_take_the_place_of_a_recording_are_not_written_to(tmp_path: Path) -> None:
    """A program that closes all files it does not know, and opens others under their numbers."""
    Recording(tmp_path / "run.db").close()
    done = subprocess.run(
        [sys.executable, "-c", CLOSES, str(tmp_path)],
        env={**os.environ, "MEMFIT_RECORDING": str(tmp_path / "run.db")},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "trained\n"), done.stderr
    assert done.stderr.count("recording into") == 1 and "Traceback" not in done.stderr
    for number in range(20):  # nor at its end
        assert (tmp_path / f"file{number}").read_bytes() == b"of the training"


def test_two_that_tell_one_recording_do_not_end_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "run.db"
    monkeypatch.setenv("MEMFIT_RECORDING", str(path))
    Recording(path).close()
    with ExitStack() as first:
        one = first.enter_context(memfit.track())
        with memfit.track() as other:
            other.phase("of both")
            one.phase("of one")
        with memfit.track() as other:
            first.close()
            other.phase("of the other")
    assert caplog.records == []
    assert {event.text for event in load(path).events} == {"of both", "of one", "of the other"}


@pytest.mark.parametrize("why", ["folder", "thread"])
def test_a_block_runs_where_nothing_can_be_recorded(
    why: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("no room") if why == "folder" else RuntimeError("can't start new thread")

    if why == "folder":
        monkeypatch.setattr("tempfile.TemporaryDirectory", refuse)
    else:
        monkeypatch.setattr("threading.Thread.start", refuse)
    with memfit.track() as run:
        run.phase("rollout")
        run.step(1)
    assert [record.message.partition(":")[0] for record in caplog.records] == [
        "nothing is recorded"
    ]


class Hostile(gymnasium.Env[np.ndarray, np.int64]):
    """An env whose parts do not like to be looked at."""

    observation_space = gymnasium.spaces.Box(-1, 1, (4,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self) -> None:
        self.part = Part()

    def reset(self, **_: object) -> tuple[np.ndarray, dict[str, object]]:
        return np.zeros(4, np.float32), {}

    def step(self, action: np.int64) -> tuple[np.ndarray, float, bool, bool, dict[str, object]]:
        return np.zeros(4, np.float32), 0.0, False, False, {}


class Part:
    @property
    def nbytes(self) -> int:
        raise RuntimeError("not now")


def test_a_wrapped_env_that_cannot_be_looked_at_goes_on(tmp_path: Path) -> None:
    with memfit.track(tmp_path / "own.db") as run:
        env: Any = MemoryWrapper(Hostile(), run)
        env.reset()
        env.step(0)
        env.close()
    assert env.steps == 1


TRAINING = """
import resource, sys
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from memfit.tracking.sb3 import MemoryCallback

class Fault(BaseCallback):
    def _on_step(self):
        if self.num_timesteps == 100 and sys.argv[2] == "full":
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        return True

own = [MemoryCallback(sys.argv[1])] if sys.argv[1] else []
model = PPO("MlpPolicy", "CartPole-v1", n_steps=64, batch_size=64, device="cpu", seed=1)
for _ in range(2):
    model.learn(256, callback=[Fault(), *own], reset_num_timesteps=False)
parameters = torch.cat([p.flatten() for p in model.policy.parameters()])
print(parameters.double().sum().item(), parameters.double().square().sum().item())
"""


@pytest.mark.slow
def test_a_callback_changes_nothing_of_a_training(tmp_path: Path) -> None:
    """A full disk, and a second learn() that finds its recording there already."""
    said = []
    for record, fault in (("", "none"), (str(tmp_path / "ppo.db"), "full")):
        done = subprocess.run(
            [sys.executable, "-c", TRAINING, record, fault],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    assert said[0] == said[1]


def test_telling_takes_no_time(tmp_path: Path) -> None:
    path = tmp_path / "own.db"
    with memfit.track(path) as run, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        began = time.monotonic()
        for step in range(1000):
            run.phase(f"phase {step}")
            run.step(step)
        assert time.monotonic() - began < 1
        other.execute("ROLLBACK")
    assert len(load(path).events) > 1000
