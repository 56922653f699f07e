"""skrl: facts with known answers, memories that are only reserved, and what is refused."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import skrl.memories.torch.base
import torch

from memfit.cli import main
from memfit.errors import SpecError, Unsupported
from memfit.formulas.array_bytes import reserved
from memfit.libraries.skrl import LIBRARY, Skrl, SkrlTraining, _reserve
from memfit.measure.kernel.proc import own_bytes
from memfit.measure.survey.malloc import Malloc
from memfit.model import RunSpec
from memfit.model.training import SkipTraining, Work, no_mark
from tests.libraries import skrl_runs

MIB = 2**20


def training(trainer: Any) -> SkrlTraining:
    made = SkrlTraining(trainer)
    made.prepare()
    return made


def bytes_of(spec: RunSpec) -> dict[str, int]:
    return {a.name: reserved(a, spec.knobs).evaluate(spec.knobs) for a in spec.arrays}


class TestFacts:
    def test_a_rollout_by_hand(self, tmp_path: Path) -> None:
        spec = training(skrl_runs.ppo(tmp_path)).facts()
        assert (spec.algorithm, spec.policy, spec.on_policy) == ("PPO", "Policy+Values", True)
        samples = 8 * 2
        scalars = ("rewards", "log_prob", "values", "returns", "advantages")
        assert bytes_of(spec) == {
            "memory.observations": samples * 4 * 4,
            "memory.actions": samples * 4,
            **{f"memory.{name}": samples * 4 for name in scalars},
            **{f"memory.{name}": samples for name in ("terminated", "truncated")},
            "memory.all_sequence_indexes": samples * 8,
            "update.indexes": 2 * samples * 8,
            "update.sampled": samples * 4 * (4 + 1 + 1 + 1 + 1 + 1),
            "update.returns": 2 * samples * 4,
        }
        assert spec.knobs == {
            "n_envs": 2,
            "timesteps": 40,
            "rollouts": 8,
            "mini_batches": 2,
            "learning_epochs": 8,
        }
        assert spec.networks[0].parameter_bytes == 4 * (4 * 2 + 2 + 4 * 1 + 1)

    def test_a_rollout_is_as_large_as_its_memory(self, tmp_path: Path) -> None:
        made = training(skrl_runs.ppo(tmp_path, memory_size=32))
        spec = made.facts()
        assert spec.knobs["memory_size"] == 32 and spec.knobs["rollouts"] == 8
        sizes = made.sizes(spec.knobs)
        assert (sizes.width, sizes.minibatches, sizes.iterations) == (32, 2, 5)

    def test_a_replay_by_hand(self, tmp_path: Path) -> None:
        spec = training(skrl_runs.dqn(tmp_path)).facts()
        held = bytes_of(spec)
        assert held["memory.observations"] == held["memory.next_observations"] == 100 * 4 * 4
        assert held["update.indexes"] == 2 * 40 * 8  # as many as the run has steps
        assert "update.sampled" not in held
        assert [n.parameter_bytes for n in spec.networks] == [4 * (4 * 2 + 2)] * 2
        assert spec.networks[1].gradient_bytes == 0
        assert spec.first_update == "learning_starts + 1"

    def test_a_copy_of_the_best_checkpoint_is_held(self, tmp_path: Path) -> None:
        trainer = skrl_runs.ppo(tmp_path, write_interval=2, checkpoint_interval=10)
        made = training(trainer)
        work = Work(batch=8, knobs=made.facts().knobs)
        made.collect(work)
        made.update(work, lambda word: None)
        spec = made.facts()
        best = bytes_of(spec)["checkpoint.best"]
        adam = 2 * (4 * 15) + 4 * 4  # two averages of each number, a step count of each of four
        assert best == 4 * 15 + adam
        assert [callback.kind for callback in spec.callbacks] == ["save"]

    def test_without_checkpoints_nothing_is_saved(self, tmp_path: Path) -> None:
        made = training(skrl_runs.ppo(tmp_path, write_interval=2, checkpoint_interval=1000))
        assert not made.facts().callbacks and made.beside().save is None


class TestUpdate:
    def test_a_surveyed_one_samples_nothing_itself(self, tmp_path: Path) -> None:
        made = training(skrl_runs.ppo(tmp_path))
        work = Work(batch=64, knobs=made.facts().knobs)
        made.collect(work)
        assert [minibatch[0].shape for minibatch in made.sampled] == [(64, 4)] * 2
        made.update(work, no_mark)
        assert "sample" not in vars(made.agent.memory)

    def test_the_settings_are_as_they_were_afterwards(self, tmp_path: Path) -> None:
        trainer = skrl_runs.dqn(tmp_path)
        made = training(trainer)
        work = Work(batch=8, knobs=made.facts().knobs)
        made.collect(work)
        made.update(work, lambda word: None)
        cfg = trainer.agents.cfg
        assert (cfg.batch_size, cfg.gradient_steps, trainer.cfg.timesteps) == (16, 1, 40)
        assert "sample" not in vars(trainer.agents.memory)
        assert "post_interaction" not in vars(trainer.agents)

    def test_a_rehearsal_draws_from_as_many_rows_as_the_run_fills(self, tmp_path: Path) -> None:
        trainer = skrl_runs.dqn(tmp_path)
        made = training(trainer)
        made.collect(Work(batch=16, knobs=made.facts().knobs, rehearsal=True))
        memory = trainer.agents.memory
        assert memory.memory_size == 100 and len(memory) == 40
        assert not torch.isnan(memory.tensors["observations"]).any()


def test_a_memory_takes_no_page_before_it_is_filled() -> None:
    base = skrl.memories.torch.base
    assert base.__file__ is not None
    found = importlib.util.spec_from_file_location("memory_again", base.__file__)
    assert found is not None and found.loader is not None
    again = importlib.util.module_from_spec(found)
    found.loader.exec_module(again)
    _reserve(again)
    kind = type("Kept", (again.Memory,), {"sample": None})
    malloc = Malloc()  # what it keeps of skrl's own lists depends on the tests before
    malloc.release()
    before = own_bytes()
    memory = kind(memory_size=2**20, num_envs=4, device="cpu")
    memory.create_tensor(name="observations", size=64, dtype=torch.float32)
    memory.create_tensor(name="terminated", size=1, dtype=torch.bool)
    held = memory.tensors["observations"]
    assert held.nbytes == 1024 * MIB and held.dtype is torch.float32
    assert memory.tensors["terminated"].dtype is torch.bool
    malloc.release()
    assert own_bytes() - before < 64 * MIB


class TestWhereTrainingBegins:
    def test_the_first_that_is_not_skipped_is_handed_over_once(self) -> None:
        seen: list[object] = []

        def stop(training: Any) -> None:
            seen.append(training.trainer)
            if len(seen) == 1:
                raise SkipTraining

        train = Skrl()._watched(lambda trainer: "trained", stop)
        trainers = [SimpleNamespace(agents=None, env=None) for _ in range(3)]
        assert [train(trainer) for trainer in trainers] == [None, "trained", "trained"]
        assert seen == trainers[:2]

    def test_trainers_are_its_own_and_others_are_not(self, tmp_path: Path) -> None:
        assert LIBRARY.owns(skrl_runs.dqn(tmp_path))
        assert not LIBRARY.owns(skrl_runs.dqn(tmp_path).agents)

    def test_no_spec_describes_it(self, tmp_path: Path) -> None:
        with pytest.raises(SpecError, match="plan its script"):
            LIBRARY.build({}, tmp_path, lambda training: None)


@pytest.mark.parametrize("agents", ["CEM", "several", "no memory"])
def test_what_is_not_known_is_refused(agents: str, tmp_path: Path) -> None:
    trainer = skrl_runs.ppo(tmp_path)
    if agents == "several":
        trainer.agents = [trainer.agents] * 2
    elif agents == "no memory":
        trainer.agents.memory = None
    else:
        trainer.agents = type("CEM", (), {"memory": trainer.agents.memory})()
    with pytest.raises(Unsupported, match="memfit plans PPO, A2C"):
        SkrlTraining(trainer).prepare()


REFUSED = """
from tests.libraries import skrl_runs
from pathlib import Path
from skrl.trainers.torch import StepTrainer
made = skrl_runs.dqn(Path())
StepTrainer(env=made.env, agents=made.agents, cfg={"timesteps": 9, "headless": True}).train()
"""


def test_a_plan_says_what_is_not_known_and_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "train.py"
    script.write_text(REFUSED)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    assert main(["plan", str(script)]) == 2
    told = capsys.readouterr().err
    assert "under a SequentialTrainer" in " ".join(told.split()) and "Traceback" not in told


def test_a_script_is_planned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "train.py"
    source = Path(skrl_runs.__file__).read_text()
    script.write_text(f"{source}\n\nppo(Path('runs')).train()\n")
    assert main(["plan", str(script), "--format", "json", "-q"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["run"]["library"] == "skrl" and answer["knobs"]["rollouts"] == 8
    rows = {row["name"]: row for row in answer["components"]}
    assert rows["update.scratch"]["evidence"]["kind"] == "probed"
    assert rows["memory.observations"]["formula"] == "rollouts * n_envs * 16"
    assert not any("of the bytes" in note for note in answer["notes"])
