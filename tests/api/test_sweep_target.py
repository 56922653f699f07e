"""Sweeps of targets: really built with each value, really learning, planned beside."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from memfit.api.sweep import sweep
from memfit.cli import main
from memfit.errors import UsageError
from memfit.model import Outcome

pytestmark = [pytest.mark.alone, pytest.mark.timeout(300)]
MIB = 2**20
PPO = """
import sys
import numpy as np
import gymnasium as gym
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

class Wide(gym.Env):
    observation_space = gym.spaces.Box(-1, 1, (2048,))
    action_space = gym.spaces.Discrete(2)
    def reset(self, *, seed=None, options=None):
        self.held = np.ones(2**20, np.uint8)
        return self.observation_space.sample(), {}
    def step(self, action):
        return self.observation_space.sample(), 0.0, False, False, {}

n_envs = int(sys.argv[1]) if len(sys.argv) > 1 else 2
model = PPO("MlpPolicy", make_vec_env(Wide, n_envs=n_envs), n_steps=64, n_epochs=1, device="cpu")
model.learn(64 * 16)
"""
DQN = """
import gymnasium as gym
from stable_baselines3 import DQN

DQN("MlpPolicy", "CartPole-v1", buffer_size=1000, device="cpu").learn(10**7)
"""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def ppo(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(PPO)
    return path


@pytest.mark.slow
def test_a_script_is_built_with_each_value_and_planned(ppo: Path) -> None:
    result = sweep(target=ppo, over="n_envs=16,64", on=["2GiB"])
    assert [p.outcome for p in result.points] == [Outcome.DONE] * 2
    assert result.line is not None
    # An env holds 1 MiB; its 64 observations are stored, and copied once when they are shuffled.
    each = MIB + 2 * 64 * 2048 * 4
    assert result.line.bytes_per_unit == pytest.approx(each, rel=0.1)
    for point in result.points:
        assert point.planned_bytes == pytest.approx(point.peak_bytes, rel=0.1)
    assert result.planned["2GiB"] == pytest.approx(result.largest["2GiB"][1], rel=0.1)


@pytest.mark.slow
def test_a_script_may_take_the_value_itself(ppo: Path) -> None:
    result = sweep(["{envs}"], target=ppo, over="envs=16,64")
    assert result.line is not None and result.line.bytes_per_unit > 1.5 * MIB
    assert result.points[0].planned_bytes is None
    assert any("no setting envs" in note for note in result.notes)


@pytest.mark.slow
def test_a_replay_buffer_is_filled_as_the_run_will_fill_it(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(DQN)
    result = sweep(target=script, over="buffer_size=1000,2000000")
    held = result.points[1].peak_bytes - result.points[0].peak_bytes
    assert held == pytest.approx(1_999_000 * (2 * 16 + 8 + 12), rel=0.05)


@pytest.mark.slow
def test_the_row_beyond_the_limit(ppo: Path) -> None:
    result = sweep(target=ppo, over="n_envs=2,400,4000", limit=700 * MIB)
    assert [p.outcome for p in result.points] == [Outcome.DONE, Outcome.OUT_OF_MEMORY]
    assert result.points[1].peak_bytes < 900 * MIB


@pytest.mark.slow
def test_a_command_beside_the_spec_that_plans_it(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sweep", "drone-fit.toml", "--over", "agents=10,20", "-q", "--format", "json"]
    hold = "import sys; block = bytearray(int(sys.argv[1]) * 2**20)"
    assert main([*words, "--", sys.executable, "-c", hold, "{agents}"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert all(p["planned_bytes"] > p["peak_bytes"] for p in told["points"])
    assert all(row["planned"] > 0 for row in told["capacity"])


@pytest.mark.parametrize("over", ["bogus=1,2", "buffer_size=10"])
def test_a_setting_that_the_target_lacks(ppo: Path, over: str) -> None:
    with pytest.raises(UsageError, match="what can: n_envs, n_steps, batch_size"):
        sweep(target=ppo, over=over)


def test_a_knob_that_the_spec_lacks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "drone.toml", "--over", "planes=1,2", "-q"]) == 2
    assert "has no setting planes: use one of" in capsys.readouterr().err
    assert main(["sweep", "drone.toml", "--over", "planes=1", "-q", "--", "true", "{planes}"]) == 2
    assert "has no setting planes" in capsys.readouterr().err


def test_a_script_that_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "train.py"
    script.write_text("raise RuntimeError('no such level')")
    assert main(["sweep", str(script), "--over", "n_envs=1,2", "-q"]) == 1
    assert "no such level" in capsys.readouterr().err


LOOP = """
import numpy as np
import torch
class Env:
    observation_space = action_space = None
    def reset(self):
        return 0
    def step(self, action):
        return 0, 1.0, False, {}
env = Env()
env.reset()
NUM_STEPS = 16
obs = torch.zeros(NUM_STEPS, 2**18)
net = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    for step in range(NUM_STEPS):
        env.step(0)
        obs[step] = 1
    for _ in range(8):
        net(torch.ones(4)).sum().backward()
        optimizer.step()
"""


@pytest.mark.slow
def test_a_loop_is_tried_with_each_value(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(LOOP)
    result = sweep(target=path, over="NUM_STEPS=32,128", on=["2GiB"])
    assert [point.outcome for point in result.points] == [Outcome.DONE] * 2
    assert result.line is not None
    assert result.line.bytes_per_unit == pytest.approx(MIB, rel=0.05)
    assert [p.planned_bytes for p in result.points] == [
        pytest.approx(p.peak_bytes, rel=0.05) for p in result.points
    ]
