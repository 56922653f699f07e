"""Phases and steps from inside a training, in the recording from outside or in one of its own."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import memfit
from memfit.analyses.forecast import forecast
from memfit.measure.record.recording_reader import load
from memfit.model import EventKind
from memfit.render.trace import trace_blocks
from memfit.tracking.gym import MemoryWrapper

PROGRAM = """
import time
import memfit
with memfit.track() as run:
    for phase in ("rollout", "update"):
        run.phase(phase)
        for step in range(100, 104):
            run.step(step)
            time.sleep(0.3)
"""


def phases(path: Path) -> list[str]:
    return [e.text for e in load(path).events if e.kind is EventKind.PHASE]


def test_below_memfit_run_it_adds_to_that_recording(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    trace = memfit.run([sys.executable, "-c", PROGRAM], record=path)
    assert trace.exit_code == 0
    assert phases(path) == ["rollout", "update"]
    assert {r.step for r in trace.readings} & {100, 101, 102, 103}
    assert sorted(f.name for f in tmp_path.iterdir()) == ["run.db"]


def test_alone_it_records_itself(tmp_path: Path) -> None:
    path = tmp_path / "own.db"
    with memfit.track(path) as run:
        run.phase("rollout")
        block = bytearray(b"1" * (64 << 20))
        time.sleep(0.8)
        assert run.memory_bytes() >= len(block)
    trace = load(path)
    assert phases(path) == ["rollout"]
    assert trace.peak is not None and trace.peak.bytes >= 64 << 20
    assert trace.exit_code == 0


def test_a_place_that_is_taken_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "own.db"
    path.write_text("mine")
    with pytest.raises(memfit.MemfitError, match="there already"), memfit.track(path):
        pass
    assert path.read_text() == "mine"


TRAINING = """
import sys
from stable_baselines3 import PPO
from memfit.tracking.sb3 import MemoryCallback
model = PPO("MlpPolicy", "CartPole-v1", n_steps=64, batch_size=64, device="cpu", verbose=1)
model.learn(256, callback=MemoryCallback(sys.argv[1]))
"""


@pytest.mark.truth
def test_a_callback_puts_phases_into_the_recording_and_memory_into_the_logger(
    tmp_path: Path,
) -> None:
    path = tmp_path / "ppo.db"
    done = subprocess.run(
        [sys.executable, "-c", TRAINING, str(path)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "pss_mib" in done.stdout and "peak_mib" in done.stdout
    assert phases(path)[:4] == ["rollout", "update", "rollout", "update"]
    held = load(path).holders
    assert held["model.rollout_buffer.observations"] == 64 * 4 * 4
    assert held["model.policy parameters"] == held["model.policy grad"] > 0
    assert held["model.policy optimizer"] > 2 * held["model.policy parameters"]


def test_a_wrapper_counts_steps(tmp_path: Path) -> None:
    path = tmp_path / "env.db"
    with memfit.track(path) as run:
        env = MemoryWrapper(gymnasium.make("CartPole-v1"), run)
        env.reset(seed=0)
        for _ in range(5):
            env.step(0)
            time.sleep(0.25)
        env.close()
        assert env.steps == 5
    assert phases(path) == ["rollout"]
    assert {r.step for r in load(path).readings} - {None}


class Hoarder(gymnasium.Env[np.ndarray, np.int64]):
    observation_space = gymnasium.spaces.Box(-1, 1, (4,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self) -> None:
        self.level = {"tiles": np.zeros((64, 64), np.uint8)}
        self.history: list[np.ndarray] = []

    def reset(self, **_: object) -> tuple[np.ndarray, dict[str, object]]:
        return np.zeros(4, np.float32), {}

    def step(self, action: np.int64) -> tuple[np.ndarray, float, bool, bool, dict[str, object]]:
        self.history.append(np.zeros(1000, np.uint8))
        return np.zeros(4, np.float32), 0.0, False, False, {}


def test_a_wrapper_tells_what_an_env_holds(tmp_path: Path) -> None:
    path = tmp_path / "env.db"
    with memfit.track(path) as run:
        env = MemoryWrapper(Hoarder(), run)
        env.reset()
        for _ in range(7):
            env.step(0)
        env.close()
        run.holders({"model.replay_buffer": 5})
    trace = load(path)
    assert trace.holders == {
        "env.level['tiles']": 4096,
        "env.history[*]": 7000,
        "model.replay_buffer": 5,
    }
    told = "\n".join(str(block) for block in trace_blocks(trace, forecast(trace.readings, None)))
    assert "env.history[*]" in told
