"""The command line: what it asks of the API, where it writes, and how it ends."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from memfit.cli import main
from memfit.cli.app import app
from memfit.errors import TargetFailed, UsageError, visible
from memfit.model import Plan
from tests.samples import dqn_plan, ppo_plan

COMMANDS = [command.name for command in get_command(app).commands.values()]  # type: ignore[attr-defined]
Run = Callable[..., int]


class Api:
    """Stands for `memfit.api.plan`: remembers what it was asked."""

    def __init__(self) -> None:
        self.result: Plan | BaseException = ppo_plan()
        self.asked: dict[str, Any] = {}

    def plan(self, target: str, **options: Any) -> Plan:
        self.asked = {"target": target, **options}
        if (progress := options["progress"]) is not None:
            progress("reading the script")
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Api:
    fake = Api()
    monkeypatch.setattr("memfit.api.plan.plan", fake.plan)
    return fake


def test_a_run_that_fits_ends_with_0(api: Api, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "train.py"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("Fits: peak ")
    assert err == "memfit: reading the script\n"
    assert api.asked["timeout"] == 120.0
    assert api.asked["limit"] is None


def test_a_run_that_does_not_fit_ends_with_3(api: Api, capsys: pytest.CaptureFixture[str]) -> None:
    api.result = dqn_plan()
    assert main(["plan", "train.py", "-q"]) == 3
    out, err = capsys.readouterr()
    assert out.startswith("Does not fit: peak ")
    assert err == ""


OPTIONS = ["--probe", "--limit", "16GiB", "--set", "n_envs=8", "--set", "n_steps=1_000"]
MORE = ["--on", "rtx-4090", "--on", "24GiB", "--timeout", "5", "--all-findings"]


@pytest.mark.parametrize(
    "words",
    [
        ["train.py", *OPTIONS, *MORE],
        [*OPTIONS, *MORE, "train.py"],
        [*OPTIONS, "train.py", *MORE],
    ],
)
def test_options_stand_before_and_after_the_target(api: Api, words: list[str]) -> None:
    assert main(["plan", *words, "-q", "--", "--seed", "1", "--", "x"]) == 0
    assert api.asked == {
        "target": "train.py",
        "args": ("--seed", "1", "--", "x"),
        "probe": True,
        "quick": False,
        "limit": 16 * 2**30,
        "knobs": {"n_envs": 8, "n_steps": 1000},
        "on": ("rtx-4090", "24GiB"),
        "per": "",
        "device": "cpu",
        "timeout": 5.0,
        "network": False,
        "real_env": False,
        "module": False,
        "all_findings": True,
        "progress": None,
    }


def test_a_module_and_a_command_are_targets_too(api: Api) -> None:
    assert main(["plan", "-m", "zoo.train", "-q", "--", "--algo", "ppo"]) == 0
    assert (api.asked["target"], api.asked["module"]) == ("zoo.train", True)
    assert main(["plan", "-q", "--real-env", "--", "python", "train.py"]) == 0
    assert (api.asked["target"], api.asked["args"]) == ("", ("python", "train.py"))
    assert api.asked["real_env"] is True


def test_rehearsing_is_asked_for_or_forbidden_not_both(
    api: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", "train.py", "-q", "--quick"]) == 0
    assert api.asked["quick"] is True
    assert main(["plan", "train.py", "-q", "--quick", "--probe"]) == 2
    assert "leave one of them out" in capsys.readouterr().err


def test_the_network_is_allowed_where_that_is_asked_for(api: Api) -> None:
    assert main(["plan", "train.py", "--network", "-q"]) == 0
    assert api.asked["network"] is True


def test_json_is_alone_on_standard_output(api: Api, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "train.py", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["kind"], data["fits"]) == ("plan", True)


@pytest.mark.parametrize(("form", "start"), [("terminal", "Fits"), ("md", "Fits"), ("json", "{")])
def test_a_result_goes_to_a_file(
    api: Api, tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str, start: str
) -> None:
    file = tmp_path / "plan.out"
    assert main(["plan", "train.py", "--format", form, "-o", str(file), "-q"]) == 0
    assert file.read_text(encoding="utf-8").startswith(start)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("place", ["missing/plan.json", "."])
def test_a_place_that_cannot_be_written_is_refused_at_once(
    api: Api, tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    assert main(["plan", "train.py", "-o", str(tmp_path / place)]) == 2
    assert "cannot write" in capsys.readouterr().err
    assert api.asked == {}


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["-m", "zoo.train", "train.py"],
        ["train.py", "--nonsense"],
        ["train.py", "another.py"],
        ["train.py", "--limit", "much"],
        ["train.py", "--limit", "0"],
        ["train.py", "--limit", "-1GiB"],
        ["train.py", "--set", "n_envs"],
        ["train.py", "--set", "n_envs=many"],
        ["train.py", "--set", "n_envs=0"],
        ["train.py", "--set", "=3"],
        ["train.py", "--timeout", "0"],
        ["train.py", "--timeout", "nan"],
        ["train.py", "--timeout", "soon"],
        ["train.py", "--format", "pdf"],
    ],
)
def test_bad_usage_ends_with_2_and_a_message(
    api: Api, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.strip()
    assert "Traceback" not in err
    assert api.asked == {}


@pytest.mark.parametrize(
    "words",
    [
        ["{}"],
        ["plan", "train.py", "{}"],
        ["plan", "train.py", "--{}"],
        ["plan", "train.py", "--format", "{}"],
        ["plan", "train.py", "--timeout", "{}"],
        ["watch", "1", "--threads", "{}"],
        ["watch", "--{}"],
        ["compare", "a", "b", "{}"],
        ["explain", "{}"],
        ["plan", "x{0}" * 100],
        ["plan", "x", "-o", "x{0}" * 100],
        ["compare", "x{0}" * 100, "x"],
        ["explain", "x{0}" * 100],
        ["watch", "x{0}" * 100],
        ["run", "--no-file", "--", ""],
        ["run", "--limit", "{}", "--", "true"],
        ["run", "-o", "{}/run.db", "--", "true"],
        ["run", "-o", "x{0}" * 100, "--", "true"],
    ],
)
def test_control_characters_of_an_argument_reach_no_terminal(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([word.format("a\x1b]0;title\x07\u202e\x9b2J") for word in words]) == 2
    err = capsys.readouterr().err
    assert err and visible(err) == err


def test_an_unknown_command_ends_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plam"]) == 2
    assert "plam" in capsys.readouterr().err


def test_a_scripts_argument_without_dashes_is_explained(
    api: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", "train.py", "--seed", "1"]) == 2
    assert "after --" in capsys.readouterr().err


def test_the_targets_own_traceback_comes_first(
    api: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    api.result = TargetFailed("train.py failed: fix it", output="Traceback: own\n")
    assert main(["plan", "train.py", "-q"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "Traceback: own\n\nmemfit: train.py failed: fix it\n"


def test_an_error_has_one_message(api: Api, capsys: pytest.CaptureFixture[str]) -> None:
    api.result = UsageError("no such file: give another")
    assert main(["plan", "train.py", "-q"]) == 2
    assert capsys.readouterr().err == "memfit: no such file: give another\n"


def test_ctrl_c_ends_quietly_with_130(api: Api, capsys: pytest.CaptureFixture[str]) -> None:
    api.result = KeyboardInterrupt()
    assert main(["plan", "train.py", "-q"]) == 130
    assert capsys.readouterr() == ("", "")


def test_ctrl_c_while_commands_are_loaded_shows_no_traceback() -> None:
    code = """
import os, signal, sys
class Pressed:
    def find_spec(self, name, *where):
        if name == "memfit.cli.app":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Pressed())
from memfit.cli import main
main(["--help"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == -signal.SIGINT
    assert not done.stdout and not done.stderr


def test_a_reader_that_goes_away_is_no_error_of_ours() -> None:
    """`memfit --help | head -0` shows no traceback."""
    child = subprocess.Popen(
        [sys.executable, "-m", "memfit", "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stdout is not None and child.stderr is not None
    child.stdout.close()
    error = child.stderr.read().decode()
    child.stderr.close()
    assert child.wait(30) in (0, 1, -signal.SIGPIPE, 120)
    assert "Traceback" not in error


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_teaches_with_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    text = capsys.readouterr().out
    assert f"memfit {name}" in text.partition("Examples:")[2]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_every_command_is_explained(name: str) -> None:
    command = get_command(app).commands[name]  # type: ignore[attr-defined]
    assert command.help
    unexplained = [
        p.name for p in command.params if not getattr(p, "help", None) and p.name != "help"
    ]
    assert not unexplained


@pytest.mark.parametrize("name", COMMANDS)
def test_the_readme_names_every_command(name: str) -> None:
    readme = Path(__file__).parents[2] / "README.md"
    assert f"memfit {name}" in readme.read_text(encoding="utf-8")


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert re.fullmatch(r"memfit \d+\.\d+\.\d+\n", capsys.readouterr().out)
