"""Run specs: the shipped ones parse, and a wrong one is told what is wrong and where."""

from __future__ import annotations

import contextlib
import json
import math
import tomllib
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import stable_baselines3
from hypothesis import given
from hypothesis import strategies as st

import memfit
from memfit.errors import MemfitError, SpecError, Unsupported, UsageError
from memfit.libraries.sb3 import described_run as sb3_run
from memfit.libraries.torch_spec import described_run as torch_run
from memfit.model.expression import parse_size
from memfit.sources import spec

SHIPPED = sorted((Path(memfit.__file__).parent / "specs").glob("*.toml"))


def test_there_is_a_spec_for_each_system() -> None:
    assert {path.stem for path in SHIPPED} >= {"drone", "fighter", "ninja", "trader"}


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_spec_is_read(path: Path) -> None:
    facts = spec.load(path)
    assert facts["name"].startswith(path.stem.partition("-")[0])
    assert all(value > 0 for value in facts["knobs"].values() if isinstance(value, int))


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ("batch_size = 2048", "batch_size = -1"),
        ("batch_size = 2048", "batch_size = 'many'"),
        ("batch_size = 2048", "batch_sise = 2048"),
        ("n_steps = 8192", f"n_steps = {2**50}"),
        ("schema = 1", "schema = 99"),
    ],
)
def test_a_wrong_spec_is_refused_by_name(change: str, word: str, tmp_path: Path) -> None:
    fighter = next(path for path in SHIPPED if path.stem == "fighter").read_text()
    assert change in fighter
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(fighter.replace(change, word, 1))
    with pytest.raises(SpecError, match=r"wrong\.toml"):
        spec.load(wrong)


def test_an_unknown_library_and_broken_toml_are_refused(tmp_path: Path) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("schema = [")
    with pytest.raises(SpecError):
        spec.load(broken)
    other = tmp_path / "other.toml"
    other.write_text('schema = 1\nname = "x"\nlibrary = "no-such-library"\n')
    with pytest.raises(Unsupported, match="torch"):
        spec.load(other)
    with pytest.raises(MemfitError):
        spec.load(tmp_path / "missing.toml")


@given(a=st.integers(1, 10**6), b=st.integers(1, 10**6), c=st.integers(1, 1000))
def test_an_expression_means_what_python_says(a: int, b: int, c: int) -> None:
    for text in ("a * b + c", "a * (b + c)", "a // c + b", "(a + b) // c * 7", "a + 2 * b - c"):
        knobs = {"a": a, "b": b, "c": c}
        assert parse_size(text, knobs).evaluate(knobs) == eval(text, {}, knobs)


# -- one wrong thing in a spec that is right -------------------------------------------------------

SB3 = """
schema = 1
name = "lander"
library = "stable-baselines3"
algorithm = "DQN"
policy = "MlpPolicy"
knobs = { n_envs = 2, total_timesteps = 1000, gradient_steps = 1 }
policy_kwargs = { net_arch = [64] }
observation = { shape = [8] }
action = { discrete = 4 }
callback = [{ kind = "save", every = 100 }]
"""
TORCH = """
schema = 1
name = "chain"
library = "torch"
knobs = { agents = 8 }
update = { batch = "agents", rollout = 1, steps = 2 }
array = [{ name = "a", shape = [3] }, { name = "b", shape = [3] }]

[[network]]
name = "encoder"
input = [4]
layers = [{ type = "Linear", args = [4, 2] }]

[[network]]
name = "decoder"
after = "encoder"
target = "encoder"
loss = "MSELoss"
layers = [{ type = "Linear", args = [2, 4] }]

[[network]]
name = "other"
input = [4]
layers = [{ type = "Linear", args = [4, 2] }]
"""


def written(folder: Path, text: str, *changes: tuple[str, str]) -> Path:
    """A file with that text, in which the first of each of these was replaced."""
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    path = folder / "run.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_specs_that_are_changed_below_are_right(tmp_path: Path) -> None:
    spec.load(written(tmp_path, SB3))
    torch_run.from_spec(spec.load(written(tmp_path, TORCH)))


@pytest.mark.parametrize(
    ("text", "old", "new", "says"),
    [
        (SB3, 'library = "stable-baselines3"', "library = []", "library is []"),
        (SB3, 'library = "stable-baselines3"', "", "library is missing: use one of"),
        (SB3, "schema = 1", "schema = true", "schema is True"),
        (SB3, "schema = 1", "schema = 1.0", "schema is 1.0"),
        (SB3, "schema = 1", "", "schema is missing"),
        (SB3, 'algorithm = "DQN"', "algorithm = []", "algorithm is []: it must be a text"),
        (SB3, "n_envs = 2", f"n_envs = 0x{'f' * 5000}", "more than 64 bits"),
        (SB3, "n_envs = 2", f"n_envs = {'9' * 5000}", "more than 64 bits"),
        (SB3, "[64]", "[" * 40 + "]" * 40, "more than 32 lists"),
        (SB3, "[64]", "[" * 4000 + "]" * 4000, "more than 32 lists"),
        (SB3, "[64]", "3", "net_arch is 3: it must be a list"),
        (SB3, "[64]", "[64, 0]", "net_arch[1] is 0: it must be at least 1"),
        (SB3, "[64]", "{ pi = [0] }", "net_arch.pi[0] is 0: it must be at least 1"),
        (SB3, "gradient_steps = 1", "gradient_steps = 0", "at least 1, or -1"),
        (SB3, "gradient_steps = 1", "gradient_steps = -2", "at least -1"),
        (SB3, "discrete = 4", 'discrete = 4, dtype = "uint8"', "action.dtype means nothing"),
        (SB3, "discrete = 4", "discrete = 4, low = 0", "action.low means nothing"),
        (SB3, "discrete = 4", "multibinary = 4, high = 1", "action.high means nothing"),
        (SB3, "shape = [8]", "shape = [8], low = 2, high = 1", "observation.low is 2, above high"),
        (SB3, "shape = [8]", "shape = []", "observation.shape has 0 entries: give at least 1"),
        (SB3, "discrete = 4", "multidiscrete = []", "action.multidiscrete has 0 entries"),
        (SB3, "shape = [8]", "shape = [8], low = -inf", "low is -inf: it must be a finite number"),
        (SB3, "every = 100", "every = 100, save_best = true", "callback[0].save_best"),
        (
            SB3,
            'kind = "save", every = 100',
            'kind = "evaluate", every = 100, save_replay_buffer = true',
            "callback[0].save_replay_buffer",
        ),
        (SB3, 'callback = [{ kind = "save", every = 100 }]', "callback = {}", "write [[callback]]"),
        (TORCH, 'batch = "agents"', 'batch = "agents * 1000000000000000"', "at most 1,125,899,9"),
        (TORCH, 'batch = "agents"', 'batch = "agents - 8"', "it must be at least 1"),
        (TORCH, 'batch = "agents"', 'batch = "1 // (agents - 8)"', "divides by zero with these"),
        (TORCH, 'batch = "agents"', "batch = true", "update.batch: True is no size: write a whole"),
        (TORCH, "agents = 8", "int = 0", "knobs.int is 0: it must be at least 1"),
        (TORCH, "agents = 8", "lambda = 8", "knobs.lambda: name it like a variable"),
        (TORCH, 'name = "b"', 'name = "a"', "array[1] (a): that name is taken"),
        (TORCH, 'name = "b"', 'name = "b b"', "array[1].name is 'b b': use letters"),
        (TORCH, 'name = "b"', 'name = "b", phases = ["update", "build"]', "['build', 'update']"),
        (TORCH, 'name = "b"', 'name = "b", phases = ["build", "build"]', "Write ['build']"),
        (TORCH, 'loss = "MSELoss"', "", 'loss = "sum" has no target'),
        (TORCH, 'target = "encoder"', 'target = "other"', "no network above it with an input"),
        (TORCH, 'name = "other"', 'name = "other"\nloss = "L1Loss"\ntarget = "encoder"', "chain"),
        (TORCH, "input = [4]", 'input = [4]\nrollout = "none"', "does not call 'encoder'"),
        (TORCH, 'after = "encoder"', 'after = "nobody"', "no network above it"),
    ],
)
def test_one_wrong_thing_is_named(text: str, old: str, new: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        spec.load(written(tmp_path, text, (old, new)))
    assert says in str(refused.value)
    assert str(refused.value).count("\n") == 0
    assert len(str(refused.value)) < 300 + len(str(tmp_path))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"MSELoss"', '"MSELos"', "torch.nn has no loss 'MSELos' (did you mean MSELoss?)"),
        ('"MSELoss"', '"Linear"', "torch.nn has no loss 'Linear'"),
        ('"MSELoss"', '"MSELoss"\noptimizer = "Adm"', "torch.optim has no optimizer 'Adm'"),
        ('"MSELoss"', '"MSELoss"\noptimizer = "lr_scheduler"', "no optimizer 'lr_scheduler'"),
        ('"MSELoss"', '"MSELoss"\noptimizer = "Muon"', "torch.optim.Muon refuses its parameters"),
        ('"Linear", args = [2, 4]', '"Linar"', "no layer 'Linar' (did you mean Linear?)"),
        ('"Linear", args = [2, 4]', '"functional"', "torch.nn has no layer 'functional'"),
        ("args = [2, 4]", "args = [-2, 4]", "layers[0]: Linear refuses its arguments: Runtime"),
        ("args = [2, 4]", 'args = ["1 // (agents - 8)", 4]', "refuses its arguments: ZeroDivision"),
        ('"Linear", args = [2, 4]', '"Conv1d", args = [2, 4, 3], groups = 0', "refuses its argum"),
        ("args = [2, 4]", "args = [2]", "refuses its arguments: TypeError"),
    ],
)
def test_what_torch_refuses_is_the_specs_fault(
    old: str, new: str, says: str, tmp_path: Path
) -> None:
    facts = spec.load(written(tmp_path, TORCH, (old, new)))
    with pytest.raises(SpecError) as refused:
        torch_run.from_spec(facts)
    assert says in str(refused.value)
    assert str(refused.value).startswith("network[1] (decoder): ")


@pytest.mark.parametrize(
    ("factory", "says"),
    [
        ("nosuch.module:make", "there is no module 'nosuch'"),
        ("json.nosuch:make", "there is no module 'json.nosuch'"),
        ("json:nosuch", "'json' has no function 'nosuch'"),
        ("json:loads", "missing a required argument: 's'"),
        ("platform:machine", "gives a str, not a torch.nn.Module"),
    ],
)
def test_a_factory_that_cannot_be_used(factory: str, says: str, tmp_path: Path) -> None:
    layers = 'layers = [{ type = "Linear", args = [4, 2] }]'
    path = written(tmp_path, TORCH, (layers, f'factory = "{factory}"'))
    with pytest.raises(SpecError, match=r"^network\[0\] \(encoder\): factory: ") as refused:
        torch_run.from_spec(spec.load(path))
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("text", "old", "new", "knobs", "says"),
    [
        (SB3, "schema", "schema", {"train_freq": 4}, "change it in the file"),
        (SB3, '"DQN"', '"PPO"', {"train_freq": 4}, "no setting train_freq: use one of batch_size"),
        (SB3, "schema", "schema", {"n_steps": 4}, "no setting n_steps: use one of batch_size"),
        (SB3, 'algorithm = "DQN"', "", {"n_envs": 4}, "algorithm is missing: add it"),
        (SB3, "{ n_envs = 2,", "3 # {", {"n_envs": 4}, "knobs is 3: it must be a table"),
        (SB3, "schema", "schema", {"n_envs": 10**80}, "it must be at most 1,099,511,627,776"),
        (TORCH, "schema", "schema", {"nosuch": 4}, "no setting nosuch: use one of agents"),
        (TORCH, "{ agents = 8 }", "{}", {"nosuch": 4}, "name it in its [knobs]"),
        (TORCH, "{ agents = 8 }", "3", {"agents": 4}, "knobs is 3: it must be a table"),
    ],
)
def test_a_change_that_cannot_be_made(
    text: str, old: str, new: str, knobs: dict[str, int], says: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as refused:
        spec.load(written(tmp_path, text, (old, new)), knobs)
    assert says in str(refused.value)


def test_as_many_gradient_steps_as_environment_steps(tmp_path: Path) -> None:
    path = written(tmp_path, SB3, ("gradient_steps = 1", "gradient_steps = -1"))
    assert spec.load(path)["knobs"]["gradient_steps"] == -1
    model, _ = sb3_run._build(spec.load(path), stable_baselines3.DQN, tmp_path)
    assert model.gradient_steps == -1


def test_a_target_of_another_chain_goes_with_a_joint_loss(tmp_path: Path) -> None:
    target = ('name = "other"', 'name = "other"\nloss = "L1Loss"\ntarget = "encoder"')
    spec.load(written(tmp_path, TORCH, target, ("steps = 2", "steps = 2, joint_loss = true")))


def test_a_path_that_cannot_be_looked_at(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="Name a text file"):
        spec.load(tmp_path / f"{'x' * 300}.toml")


ODD: tuple[Any, ...]
ODD = ([], {}, [[]], [{}], {"a": {}}, True, 0, -1, 2**62, 1.0, math.nan, "", "a b", "[", date.max)


def places(value: Any, *path: Any) -> Iterator[tuple[Any, ...]]:
    """The way to every value in a file."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, one in inner:
        yield (*path, key)
        if isinstance(one, (dict, list)):
            yield from places(one, *path, key)


def toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return value.isoformat() if isinstance(value, date) else json.dumps(value).replace("NaN", "nan")


@pytest.mark.parametrize("changed", [{}, {"n_envs": 4}, {"agents": 4}], ids=str)
@pytest.mark.parametrize("text", [SB3, TORCH], ids=["sb3", "torch"])
def test_whatever_stands_anywhere_is_read_or_refused(
    text: str, changed: dict[str, int], tmp_path: Path
) -> None:
    for place in places(tomllib.loads(text)):
        for odd in ODD:
            data = tomllib.loads(text)
            table: Any = data
            for key in place[:-1]:
                table = table[key]
            table[place[-1]] = odd
            lines = (f"{json.dumps(k)} = {toml(v)}" for k, v in data.items())
            with contextlib.suppress(MemfitError):
                spec.load(written(tmp_path, "\n".join(lines)), changed)
