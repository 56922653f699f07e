"""Any loop: its settings are found, and its arrays become facts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from memfit.libraries import library_of
from memfit.libraries.loop.dimensions import length_setting, with_formulas
from memfit.libraries.loop.own_files import OwnFiles
from memfit.libraries.loop.setting_sources import SettingSources
from memfit.libraries.loop.signals import Signals
from memfit.libraries.loop.training import LoopTraining
from memfit.model import ArraySpec, EvidenceKind
from memfit.model.job import Job, Look, TargetKind
from memfit.model.training import Looping
from memfit.model.trial import RunLength, TrialArrays, TrialEnd, TrialReading

TRIAL = TrialReading(updates=10, cycles=2, env_steps=100, seconds=1.0, ended=TrialEnd.SEEN)


class TestSettings:
    def test_the_length_is_known_by_its_name(self) -> None:
        assert length_setting({"seeds": 900, "TOTAL_TIMESTEPS": 200}, TRIAL) == "TOTAL_TIMESTEPS"
        assert length_setting({"steps": 100}, TRIAL) == "", "of a rollout"
        assert length_setting({"steps": 101}, TRIAL) == "steps"
        assert length_setting({"max_steps": 900, "num_frames": 400}, TRIAL) == "num_frames"

    def test_the_runs_own_loops_know_the_length_better(self) -> None:
        ends = replace(TRIAL, run=RunLength(steps=500, where="for", exact=True))
        assert length_setting({"total_steps": 9000, "max_steps": 510}, ends) == "max_steps"
        assert length_setting({"total_steps": 9000, "buffer_size": 500}, ends) == ""

    def test_dimensions_are_settings_or_products_of_telling_ones(self) -> None:
        array = ArraySpec(name="obs", shape=(128, 4, 512, 3), dtype="float32", itemsize=4)
        settings = {"num_steps": 128, "num_envs": 4, "minibatches": 4, "epochs": 3}
        found = with_formulas(array, settings)
        assert found.shape == ("num_steps", "num_envs", "num_envs * num_steps", 3)
        assert found.evidence is EvidenceKind.PROBED
        replay = replace(array, shape=(500, 4))
        parts = with_formulas(replay, {"num_envs": 4, "buffer_size": 2000})
        assert parts.shape == ("buffer_size // num_envs", "num_envs")
        weights = replace(array, kind="parameters")
        assert with_formulas(weights, settings) is weights


def training(text: Path = Path("none.py")) -> LoopTraining:
    own = OwnFiles(Job(kind=TargetKind.SCRIPT, target=str(text)))
    return LoopTraining(Signals(), own, SettingSources({}))


def held(path: str, *shape: int, resident: float = 1.0) -> TrialArrays:
    size = 4 * int(np.prod(shape))
    return TrialArrays(
        path=path, bytes=size, resident=int(resident * size), dtype="float32", shape=shape
    )


class TestFacts:
    def test_it_is_a_loop_and_no_library_owns_its_objects(self) -> None:
        assert isinstance(training(), Looping)
        assert not library_of("loop").owns(torch.nn.Linear(1, 1))

    def test_only_programs_that_are_surveyed_are_listened_to(self) -> None:
        job = Job(kind=TargetKind.SCRIPT, target="train.py")
        hooks = library_of("loop").hooks

        def stop(training: object) -> None:
            return

        assert list(hooks(stop, job))
        for other in (replace(job, look=Look.REHEARSE), replace(job, kind=TargetKind.SPEC)):
            assert not list(hooks(stop, other))

    def test_networks_buffers_and_optimizers_have_rows(self) -> None:
        network = [
            held("agent.actor.0.weight", 512, 512),
            held("agent.actor.0.weight grad", 512, 512),
        ]
        always = [held("main().rb.observations", 1000, 512), held("optimizer exp_avg", 512, 512)]
        both = {"update": [*network, *always, held("update().minibatch", 1000, 100)]}
        both["rollout"] = [network[0], *always]
        facts = training().observed(TRIAL, both, [])
        rows = {array.name: array for array in facts.spec.arrays}
        assert rows["agent.actor.parameters"].kind == "parameters"
        assert rows["agent.actor.gradients"].phases == ("update",)
        assert rows["optimizer.state"].kind == "optimizer"
        assert rows["rb.observations"].shape == (1000, 512)
        assert rows["minibatch"].phases == ("update",)
        assert facts.trial.held["rb.observations"] == 4 * 1000 * 512

    def test_a_buffer_that_fills_is_told_by_steps(self) -> None:
        found = {"rollout": [held("rb.observations", 1000, 512, resident=0.1)]}
        spec = training().observed(TRIAL, found, []).spec
        assert spec.arrays[0].filled == "env_steps"
        assert spec.length == "env_steps" and spec.knobs["env_steps"] == 1000

    def test_what_the_trial_did_not_see_is_told(self, tmp_path: Path) -> None:
        text = tmp_path / "train.py"
        text.write_text("torch.save(agent, 'agent.pt')")
        facts = training(text).observed(replace(TRIAL, env_steps=0), {}, [])
        assert len(facts.spec.notes) == 2
        seen = replace(TRIAL, peaks={"save": 1}, ended=TrialEnd.TIME)
        (note,) = training(text).observed(seen, {}, []).spec.notes
        assert "10 updates" in note

    def test_an_evaluation_that_is_yet_to_come_is_told(self, tmp_path: Path) -> None:
        text = tmp_path / "train.py"
        text.write_text("def evaluate(agent, env): ...")
        (note,) = training(text).observed(TRIAL, {}, []).spec.notes
        assert "evaluation" in note
        seen = replace(TRIAL, peaks={"evaluate": 1})
        assert not training(text).observed(seen, {}, []).spec.notes

    def test_a_queue_of_transitions_is_told_by_its_bound(self) -> None:
        queue = replace(held("agent.memory[*][*]", 50, 2000), elements=50, capacity=1000, count=50)
        facts = training().observed(TRIAL, {"rollout": [queue]}, [])
        array = facts.spec.arrays[0]
        assert (array.shape, array.filled) == ((1000, 8000), "ceil_div(env_steps, 2)")
        assert facts.spec.knobs == {"env_steps": 2000}
        assert facts.trial.held["agent.memory[*][*]"] == 50 * 8000

    def test_a_list_that_grows_is_told_by_the_runs_length(self) -> None:
        kept = replace(held("history[*]", 50, 2000), elements=50, count=50, grows=True)
        facts = training().observed(TRIAL, {"rollout": [kept]}, [])
        assert facts.spec.arrays[0].filled is None and facts.spec.knobs == {}
        ends = replace(TRIAL, run=RunLength(steps=3000, where="for", exact=True))
        facts = training().observed(ends, {"rollout": [kept]}, [])
        array = facts.spec.arrays[0]
        assert (array.shape, array.filled) == ((1500, 8000), "ceil_div(env_steps, 2)")
        assert facts.spec.knobs == {"env_steps": 3000}
        assert any("grows as long as" in note for note in facts.spec.notes)

    def test_the_runs_own_length_is_used_where_it_is_known(self, tmp_path: Path) -> None:
        text = tmp_path / "train.py"
        text.write_text("TOTAL_TIMESTEPS = 400\nBUFFER_SIZE = 1000\n")
        found = {"rollout": [held("rb.observations", 1000, 512, resident=0.1)]}
        variables = [("TOTAL_TIMESTEPS", 400), ("BUFFER_SIZE", 1000)]
        facts = training(text).observed(TRIAL, found, variables)
        assert facts.spec.knobs == {"BUFFER_SIZE": 1000, "TOTAL_TIMESTEPS": 400}
        assert facts.spec.arrays[0].shape == ("BUFFER_SIZE", 512)
        assert facts.spec.arrays[0].filled == "TOTAL_TIMESTEPS"
        assert facts.spec.scale == {"BUFFER_SIZE": 1000}
