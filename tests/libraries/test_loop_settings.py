"""Settings of any program: found in its text and its variables, and given other values."""

from __future__ import annotations

import argparse
import importlib.machinery
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import pytest

from memfit.libraries.loop.changed_settings import change_own_files, with_argument_values
from memfit.libraries.loop.constants import settable
from memfit.libraries.loop.main_code import main_code
from memfit.libraries.loop.own_files import OwnFiles
from memfit.libraries.loop.setting_sources import SettingSources
from memfit.libraries.loop.settings import settings_in
from memfit.model.job import Job, TargetKind

TEXT = """
import os
SIZE = 4
POWER = 2**10
MANY = int(1e6)
FROM_OUTSIDE = int(os.environ.get("MEMFIT_NO_SUCH_NAME", "8"))
lower = 32
count = 1
count += 1
class Args:
    num_envs: int = 8
    batch_size: int = 0
    hidden: int = field(default=64)
    rate: float = 0.5
class Agent:
    def __init__(self, env, capacity: int = 64, *, layers=3):
        self.capacity = capacity
        self.depth = 7
        self.place = 1
        self.place = 2
config = {"width": 16}
config["horizon"] = 20
space = SimpleNamespace(sensors=12)
def main(num_steps=5):
    epochs = 10
    for i in range(3):
        inner = 4
agent = Agent(None, 33)
parser.add_argument("--arg-one", "-a", type=int, default=5)
parser.add_argument("--two", dest="arg_two", default=6)
flags.DEFINE_integer("flag", 77, "what it is")
other(weak=9)
"""


class TestText:
    def test_those_are_settable_that_the_text_gives_a_value(self) -> None:
        assert settable(TEXT).keys() == {
            *("SIZE", "POWER", "MANY", "FROM_OUTSIDE", "lower", "num_envs", "hidden", "capacity"),
            *("layers", "depth", "width", "horizon", "sensors", "num_steps", "epochs", "arg_one"),
            *("arg_two", "flag", "weak"),
        }
        assert settable("def") == {}

    def test_a_variable_counts_where_nothing_else_gives_it_a_value(self) -> None:
        assert settable("n = 4") == {"n": True}
        assert settable("def f(n=4): pass\nfor n in range(3): pass") == {"n": False}

    def test_names_that_get_their_values_together_are_settable_one_by_one(self) -> None:
        text = """
lr, batch = 1e-3, 64
[envs, steps] = [8, 128]
first, *rest = 1, 2, 3
class Agent:
    def __init__(self, n):
        self.capacity, self.depth, self.rows = 500, n, 6
        self.rows = n
def main():
    (width, layers), size = (4, 2), 7
"""
        plain = {"batch": True, "envs": True, "steps": True, "size": True}
        assert settable(text) == {**plain, "capacity": True}
        space: dict[str, Any] = {}
        exec(main_code(text, "f.py", {"batch": 16, "capacity": 9, "envs": 2}), space)
        assert (space["lr"], space["batch"], space["envs"], space["steps"]) == (1e-3, 16, 2, 128)
        agent = space["Agent"](3)
        assert (agent.capacity, agent.depth, agent.rows) == (9, 3, 3)

    def test_attributes_of_other_objects_have_values_of_their_own(self) -> None:
        text = """
class Env:
    def __init__(self, n): self.rows = n
config.rows = 24
config.more = 1
config.more += 1
"""
        assert settable(text).keys() == {"rows"}

    def test_they_get_other_values(self) -> None:
        text = """
SIZE = 2**3
class Args:
    num_envs: int = 8
    batch_size: int = 0
config = {"width": 16}
def main(steps=5, *, more=6):
    epochs = 10
    return steps, more, epochs
result = main(more=7)
"""
        main: dict[str, Any] = {}
        knobs = {"SIZE": 5, "num_envs": 9, "width": 17, "steps": 3, "more": 4, "epochs": 2}
        exec(main_code(text, "x", knobs), main)
        assert (main["SIZE"], main["Args"].num_envs, main["config"]["width"]) == (5, 9, 17)
        assert main["result"] == (3, 4, 2)
        assert main["Args"].batch_size == 0

    def test_an_argument_of_somebody_elses_function_counts_where_nothing_else_does(self) -> None:
        text = "batch_size = 64\ngiven = dict\nfound = given(batch_size=1, rows=2)"
        main: dict[str, Any] = {}
        exec(main_code(text, "x", {"batch_size": 8, "rows": 9}), main)
        assert main["found"] == {"batch_size": 1, "rows": 9} and main["batch_size"] == 8

    def test_options_and_fields_get_other_defaults(self) -> None:
        text = """
import argparse
from dataclasses import dataclass, field
@dataclass
class Args:
    hidden: int = field(default=64)
parser = argparse.ArgumentParser()
parser.add_argument("--num-steps", type=int, default=2)
found = parser.parse_args([])
"""
        main: dict[str, Any] = {}
        exec(main_code(text, "x", {"hidden": 5, "num_steps": 9}), main)
        assert main["Args"]().hidden == 5 and main["found"].num_steps == 9

    def test_arguments_that_were_given_get_other_values(self) -> None:
        given = ["--num-envs", "4", "--num_steps=3", "--algo.size", "2", "size=1", "--seed", "1"]
        changed = with_argument_values(given, {"num_envs": 8, "num_steps": 9, "size": 7})
        assert changed == [
            *("--num-envs", "8", "--num_steps=9", "--algo.size", "7", "size=7", "--seed", "1")
        ]


@dataclass
class Inner:
    batch_size: int = 64


@dataclass
class Settings:
    num_envs: int = 8
    rate: float = 0.1
    fast: bool = True
    algorithm: Inner = field(default_factory=Inner)


class Pair(NamedTuple):
    rows: int
    name: str


class Slotted:
    __slots__ = ("depth",)

    def __init__(self) -> None:
        self.depth = 5


class Config:
    HORIZON = 6


def found_in(*variables: tuple[str, Any], given: str = "", **read: int) -> dict[str, int]:
    names = dict.fromkeys(given.split(), True)
    return settings_in(variables, names, read, lambda path: path == __file__)


class TestVariables:
    def test_they_are_found_in_what_holds_settings(self) -> None:
        module = ModuleType("settings")
        module.__file__ = __file__
        vars(module)["WIDTH"] = 11
        found = found_in(
            ("args", argparse.Namespace(num_steps=128, device="cpu", cuda=True)),
            ("other", Settings()),
            ("space", SimpleNamespace(agents=3)),
            ("pair", Pair(rows=4, name="x")),
            ("config", {"hidden": 32, 3: 5, "inner": {"layers": 2}}),
            ("slotted", Slotted()),
            ("Config", Config),
            ("settings", module),
            ("MANY", 7),
            given="num_steps num_envs batch_size agents rows hidden layers depth HORIZON WIDTH "
            "MANY cuda fast rate seed",
        )
        assert found == {
            "num_steps": 128,
            "num_envs": 8,
            "batch_size": 64,
            "agents": 3,
            "rows": 4,
            "hidden": 32,
            "layers": 2,
            "depth": 5,
            "HORIZON": 6,
            "WIDTH": 11,
            "MANY": 7,
        }

    def test_entries_that_are_not_there_hide_no_others(self) -> None:
        class ConfigDict:
            def __iter__(self) -> Iterator[str]:
                return iter(("missing", "rows"))

            def __getitem__(self, key: str) -> int:
                return {"rows": 4}[key]

        assert found_in(("cfg", ConfigDict()), given="rows missing") == {"rows": 4}

    def test_what_nothing_could_change_is_none(self) -> None:
        assert found_in(("args", argparse.Namespace(batch_size=8)), ("n", 3), given="m") == {}
        plain = settings_in([("n", 3)], {"n": False}, {}, lambda path: False)
        assert plain == {}

    def test_what_was_read_counts_and_large_floats_are_whole(self) -> None:
        found = found_in(("config", {"steps": 1e6, "rate": 1.0}), given="steps rate", rows=4)
        assert found == {"steps": 1_000_000, "rows": 4}


@pytest.fixture
def own_loader() -> Iterator[None]:
    loader: Any = importlib.machinery.SourceFileLoader
    before = loader.get_code
    yield
    loader.get_code = before


class TestSources:
    def test_files_and_command_lines_are_noted_and_changed(self) -> None:
        sources = SettingSources({"batch_size": 2, "steps": 3})
        module: Any = SimpleNamespace(loads=json.loads)
        sources.hooks()["json"](module)
        read = module.loads('{"algo": {"batch_size": 64, "name": "x"}, "rows": 5}')
        assert read["algo"]["batch_size"] == 2
        parsers: Any = SimpleNamespace(ArgumentParser=type("P", (argparse.ArgumentParser,), {}))
        sources.hooks()["argparse"](parsers)
        parser = parsers.ArgumentParser()
        parser.add_argument("--steps", type=int, default=9)
        assert parser.parse_args([]).steps == 3
        assert sources.values == {"batch_size": 2, "rows": 5, "steps": 3}

    def test_data_is_no_setting(self) -> None:
        sources = SettingSources({"a": 2})
        module: Any = SimpleNamespace(loads=json.loads)
        sources.hooks()["json"](module)
        data = {f"row{n}": 1 for n in range(1000)}
        assert module.loads(json.dumps({**data, "a": 5}))["a"] == 5
        assert sources.values == {}

    def test_own_modules_are_told_from_libraries_and_changed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_loader: None
    ) -> None:
        (tmp_path / "train.py").write_text("")
        (tmp_path / "knob_values.py").write_text("NUM_ENVS = 4\n")
        library = tmp_path / "library"
        library.mkdir()
        (library / "knob_library.py").write_text("NUM_ENVS = 4\n")
        for folder in (str(library), str(tmp_path)):
            monkeypatch.syspath_prepend(folder)
        own = OwnFiles(Job(kind=TargetKind.SCRIPT, target=str(tmp_path / "train.py")))
        change_own_files(own, {"NUM_ENVS": 9})
        import knob_library  # type: ignore[import-not-found]
        import knob_values  # type: ignore[import-not-found]

        assert (knob_values.NUM_ENVS, knob_library.NUM_ENVS) == (9, 4)
        assert "NUM_ENVS = 4\n" in list(own.texts())
        assert not own.has(str(library / "knob_library.py"))
        assert not own.has(sys.modules["memfit"].__file__ or "")
