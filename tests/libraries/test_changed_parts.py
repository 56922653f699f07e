"""Parts put in the place of stable-baselines3's own, in real children that train with them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from memfit.measure.children import sandbox
from memfit.model import Changes
from memfit.model.changes import ALGORITHM, OBSERVATION, REPLAY, ROLLOUT
from memfit.model.job import Answer, Look, Status
from memfit.sources.target import job_of
from memfit.units import GIB

pytestmark = [pytest.mark.torch, pytest.mark.timeout(300)]

ENV = """
import gymnasium, numpy

class Env(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-9, 9, (6,), numpy.float64)
    action_space = gymnasium.spaces.Discrete(2)
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 30
        return self.np_random.random(6), {}
    def step(self, action):
        self.left -= 1
        return self.np_random.random(6), float(action), False, self.left == 0, {}
"""
PPO = f"""{ENV}
from stable_baselines3 import PPO
PPO("MlpPolicy", Env(), n_steps=64, batch_size=32, n_epochs=2).learn(1_000)
"""
DQN = f"""{ENV}
from stable_baselines3 import DQN
DQN("MlpPolicy", Env(), buffer_size=2_000, learning_starts=50_000).learn(5_000)
"""


def trained(folder: Path, text: str, changes: Changes, updates: int = 0) -> Answer:
    script = folder / "train.py"
    script.write_text(text)
    job = replace(
        job_of(script, ()), look=Look.TRAIN, changes=changes, updates=updates, seconds=60.0
    )
    return sandbox.run(job, timeout=250.0, memory=4 * GIB).answer


def test_parts_train_as_those_that_they_replace(tmp_path: Path) -> None:
    own = trained(tmp_path, PPO, Changes()).trained
    assert own is not None and own.updates >= 12 and own.cycles >= 2 and own.digest
    parts = {ROLLOUT: "WindowRolloutBuffer", OBSERVATION: "NarrowObservation"}
    same = trained(tmp_path, PPO, Changes(parts=parts), own.updates).trained
    assert same is not None and (same.updates, same.digest) == (own.updates, own.digest)
    pieces = Changes(parts={ALGORITHM: "MicroBatchPPO"}, options={"micro_batch_size": 8})
    rounded = trained(tmp_path, PPO, pieces, own.updates).trained
    assert rounded is not None and rounded.updates == own.updates


def test_dict_observations_have_a_buffer_of_another_class(tmp_path: Path) -> None:
    wrapped = "gymnasium.wrappers.TransformObservation(Env(), lambda o: {'a': o}, space)"
    space = "space = gymnasium.spaces.Dict({'a': Env.observation_space})"
    text = PPO.replace("MlpPolicy", "MultiInputPolicy").replace("Env(),", f"{wrapped},", 1)
    text = text.replace("from stable", f"{space}\nfrom stable")
    found = trained(tmp_path, text, Changes(parts={ROLLOUT: "WindowRolloutBuffer"}))
    assert found.status is Status.TRAINED


def test_a_replay_learns_soon_and_is_filled_before_its_peak_is_read(tmp_path: Path) -> None:
    own = trained(tmp_path, DQN, Changes()).trained
    assert own is not None and own.filled and own.updates >= 12
    part = Changes(parts={REPLAY: "WindowReplayBuffer"})
    same = trained(tmp_path, DQN, part, own.updates).trained
    assert same is not None and same.filled and same.digest == own.digest


def test_a_part_that_a_script_chose_itself_is_kept_and_told(tmp_path: Path) -> None:
    own = "replay_buffer_class=Mine, buffer_size=2_000"
    text = DQN.replace("from stable", "class Mine(ReplayBuffer): pass\nfrom stable")
    text = f"from stable_baselines3.common.buffers import ReplayBuffer\n{text}"
    answer = trained(
        tmp_path,
        text.replace("buffer_size=2_000", own),
        Changes(parts={REPLAY: "WindowReplayBuffer"}),
    )
    assert answer.status is Status.NO_SETTING and answer.settings == (REPLAY,)
