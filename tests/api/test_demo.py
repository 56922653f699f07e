"""Each reference system declares its own demonstration, which its program and its spec take."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

import memfit
from memfit.api import demo as verb
from memfit.api.demo import demo_system, demonstrations
from memfit.cli import main
from memfit.model import DemoVariant
from memfit.sources.spec import load
from tests.test_imports import loaded

PACKAGE = Path(memfit.__file__).parent
VARIANTS = [(system, variant) for system, each in demonstrations().items() for variant in each]


def test_every_system_is_found_by_its_folder() -> None:
    folders = {file.parent.name for file in (PACKAGE / "systems").glob("*/__main__.py")}
    assert set(demonstrations()) == folders >= {"drone", "fighter", "ninja", "trader"}
    for variants in demonstrations().values():
        names = [variant.name for variant in variants]
        assert (names[0], names[-1]) == ("as described", "made to fit")


def test_looking_for_them_loads_no_system() -> None:
    code = "from memfit.api.demo import demonstrations\nassert demonstrations()"
    heavy = {"torch", "numpy", "pygame", "pyboy", "gymnasium", "stable_baselines3", "optuna"}
    assert not loaded(code) & heavy


@pytest.mark.torch
@pytest.mark.parametrize(("system", "variant"), VARIANTS, ids=lambda v: getattr(v, "name", v))
def test_a_variant_is_taken_by_its_program_and_its_spec(system: str, variant: DemoVariant) -> None:
    program = import_module(f"memfit.systems.{system}.__main__")
    assert len(set(variant.values)) > 1
    for value in variant.values:
        # A knob that the spec does not have is refused.
        assert load(PACKAGE / "specs" / variant.spec, {**variant.knobs, variant.knob: value})
        words = variant.options.replace("{value}", str(value)).split()
        options = program.arguments(words)
        assert getattr(options, variant.knob) == value
        assert options.as_described == (variant.name != "made to fit")


def test_a_system_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "robot"]) == 2
    said = capsys.readouterr().err
    assert "there is no system 'robot': give one of drone, fighter, ninja, trader" in said


@pytest.mark.slow
@pytest.mark.truth
@pytest.mark.timeout(300)
def test_a_demonstration_puts_plans_beside_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    variant = DemoVariant(
        name="made to fit",
        spec="trader-fit.toml",
        knob="steps",
        options="--steps {value} --trials 0 --workers 0 --iterations 1 --epochs 1 --quiet",
        values=(2_048, 65_536),
    )
    monkeypatch.setattr(verb, "demonstrations", lambda: {"trader": (variant,)})
    shown = demo_system("trader")
    assert [run.value for run in shown.runs] == [2_048, 65_536]
    assert all(abs(run.error) < 0.25 for run in shown.runs)
    predicted, measured = shown.lines["made to fit"]
    assert predicted is not None and measured is not None and measured.bytes_per_unit > 0
