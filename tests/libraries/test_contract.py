"""What every library keeps to, so that nothing else has to ask which one it is."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import pytest
import torch
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.vec_env import DummyVecEnv

from memfit import TorchRun
from memfit.formulas.array_bytes import scaled
from memfit.libraries import all_libraries, all_roles, extra_of, library_of, likely_library
from memfit.libraries.sb3.off_policy import OffPolicy
from memfit.libraries.sb3.on_policy import OnPolicy
from memfit.libraries.skrl import SkrlTraining
from memfit.libraries.torch_spec.torch_run import from_run
from memfit.model import Readings, RunSpec, Slope
from memfit.model.job import Job, TargetKind
from memfit.model.json_loader import from_json, to_json
from memfit.model.training import Driven, Library, Training, Work, no_mark
from tests.libraries import skrl_runs

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
# What drives nothing is tried instead: test_loop.py.
TRIED = {"loop", "jax"}
PACKAGED = [library for library in all_libraries() if library.packages]
LIBRARIES = pytest.mark.parametrize("library", PACKAGED, ids=lambda one: one.name)


def _sb3(kind: Any, model: Any) -> Any:
    return kind(
        model,
        length=200,
        callback=None,
        rest=lambda: model._setup_learn(200)[1],
        env_fns=[lambda: gymnasium.make("CartPole-v1")],
    )


def _sb3_ppo(folder: Path) -> Any:
    env = DummyVecEnv([lambda: gymnasium.make("CartPole-v1")] * 2)
    return _sb3(OnPolicy, PPO("MlpPolicy", env, n_steps=16, batch_size=16, device="cpu"))


def _sb3_dqn(folder: Path) -> Any:
    model = DQN("MlpPolicy", gymnasium.make("CartPole-v1"), buffer_size=100, device="cpu")
    return _sb3(OffPolicy, model)


def _torch(folder: Path) -> Any:
    return from_run(TorchRun(module=torch.nn.Linear(4, 2), batch=(16, 4)))


# A small training of each library: what a new one adds to be held to all of this.
TRAININGS: dict[str, list[Callable[[Path], Any]]] = {
    "stable-baselines3": [_sb3_ppo, _sb3_dqn],
    "torch": [_torch],
    "skrl": [
        lambda folder: SkrlTraining(skrl_runs.ppo(folder)),
        lambda folder: SkrlTraining(skrl_runs.dqn(folder)),
    ],
}
MADE = pytest.mark.parametrize(
    ("name", "make"),
    [(name, make) for name, makers in TRAININGS.items() for make in makers],
    ids=lambda value: value if isinstance(value, str) else "",
)


def prepared(make: Callable[[Path], Any], folder: Path) -> Any:
    training = make(folder)
    training.prepare()
    return training


def small(spec: RunSpec, **more: Any) -> Work:
    return Work(batch=8, knobs=spec.knobs, **more)


def test_every_library_is_held_to_this() -> None:
    assert {library.name for library in all_libraries()} - set(TRAININGS) == TRIED


class TestLibrary:
    def test_importing_all_of_them_loads_none_of_what_they_know(self) -> None:
        code = "import sys; from memfit.libraries import all_libraries; all_libraries()"
        code += "; sys.stdout.write(' '.join(sys.modules))"
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        loaded = {name.partition(".")[0] for name in done.stdout.split()}
        heavy = {package for library in all_libraries() for package in library.packages}
        assert not loaded & heavy

    @LIBRARIES
    def test_it_is_found_by_its_name_and_its_extra_is_one_of_memfits(
        self, library: Library
    ) -> None:
        assert library_of(library.name) is library
        project = tomllib.loads(PYPROJECT.read_text())["project"]
        assert library.extra in project["optional-dependencies"]
        assert f",{library.extra}," in project["optional-dependencies"]["all"][0].replace("[", ",")
        assert extra_of(library.packages[0]) == library.extra

    @LIBRARIES
    def test_a_program_that_imports_it_most_likely_trains_with_it(self, library: Library) -> None:
        own = library.packages[0]
        assert likely_library([own]) is library
        assert likely_library(["gymnasium", f"{own}.part", "numpy", own, "os"]) in (
            library,
            library_of("stable-baselines3") if own == "torch" else library,
        )

    @LIBRARIES
    def test_hooks_are_by_module_and_wait_for_it(self, library: Library) -> None:
        def stop(training: Training) -> None:
            raise AssertionError

        job = Job(kind=TargetKind.SCRIPT, target="train.py")
        for hooks in library.hooks(stop, job):
            assert all(name and callable(hook) for name, hook in hooks.items())

    @LIBRARIES
    def test_it_owns_nothing_of_others(self, library: Library) -> None:
        for thing in (object(), "model", torch.nn.Linear(1, 1), type("Trainer", (), {})()):
            assert not library.owns(thing)

    @LIBRARIES
    def test_its_roles_are_of_its_packages(self, library: Library) -> None:
        assert all(name.partition(".")[0] in library.packages for name in library.roles)
        assert library.roles.items() <= all_roles().items()


@MADE
class TestTraining:
    def test_it_can_be_driven(self, name: str, make: Any, tmp_path: Path) -> None:
        assert isinstance(make(tmp_path), Driven)

    def test_its_facts_pass_through_json(self, name: str, make: Any, tmp_path: Path) -> None:
        spec = prepared(make, tmp_path).facts()
        assert spec.library == name
        assert spec.scale and all(1 <= size <= spec.knobs[n] for n, size in spec.scale.items())
        assert from_json(RunSpec, to_json(spec)) == spec

    def test_it_grows_with_its_scale(self, name: str, make: Any, tmp_path: Path) -> None:
        training = prepared(make, tmp_path)
        spec = training.facts()
        one, two = (
            training.sizes(spec.knobs),
            training.sizes({**spec.knobs, **scaled(spec, times=2)}),
        )
        assert 0 < one.width <= one.unit and one.minibatches > 0
        assert one.unit <= two.unit
        assert all(array.bytes > 0 for array in one.arrays)

    def test_it_updates_at_a_size_of_memfits_choice(
        self, name: str, make: Any, tmp_path: Path
    ) -> None:
        training = prepared(make, tmp_path)
        work = small(training.facts())
        training.collect(work)
        assert training.samples_of(work) >= 1
        before = [tensor.detach().clone() for tensor in training.tensors()]
        training.update(work, no_mark)
        after = list(training.tensors())
        assert any(not torch.equal(a, b) for a, b in zip(before, after, strict=False))
        assert len(after) == len({id(tensor) for tensor in after})
        training.drop_gradients()
        assert all(tensor.grad is None for tensor in training.tensors())

    def test_its_forward_pass_can_be_traced(self, name: str, make: Any, tmp_path: Path) -> None:
        training = prepared(make, tmp_path)
        assert training.forward(8) is not None

    def test_it_rehearses_with_its_buffers_in_full(
        self, name: str, make: Any, tmp_path: Path
    ) -> None:
        training = prepared(make, tmp_path)
        spec = training.facts()
        width = training.sizes(spec.knobs).width
        work = Work(batch=width, knobs=spec.knobs, rehearsal=True, epochs=2)
        for _ in range(2):
            training.collect(work)
            training.update(work, no_mark)

    def test_what_stands_beside_it_can_be_asked_for(
        self, name: str, make: Any, tmp_path: Path
    ) -> None:
        beside = prepared(make, tmp_path).beside()
        if beside.make_env is not None:
            assert beside.make_env() is not None
        if beside.save is not None:
            beside.save(tmp_path, False)
            assert not list(tmp_path.glob("*.pt")) and not list(tmp_path.glob("*.zip"))

    def test_its_rows_have_names_of_their_own_and_sizes(
        self, name: str, make: Any, tmp_path: Path
    ) -> None:
        training = prepared(make, tmp_path)
        work = small(training.facts())
        training.collect(work)
        training.update(work, no_mark)
        spec = training.facts()
        line = Slope(fixed=100, per_unit=10)
        readings = Readings(
            stopped=10**8,
            warm=2 * 10**8,
            unit=training.sizes(spec.knobs).unit,
            base=10**7,
            live=line,
            growth={spec.update.moment: line},
        )
        rows = list(library_of(name).rows(spec, readings))
        assert len({row.name for row in rows}) == len(rows)
        assert all(row.size.evaluate(spec.knobs) >= 0 and row.phases for row in rows)
        held = {array.name for array in spec.arrays if array.kind == "buffer"}
        assert held <= {row.name for row in rows}
