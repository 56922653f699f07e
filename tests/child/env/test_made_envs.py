"""How environments are made from what a target says."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from memfit.child.env.made_envs import NoEnvironment, make
from memfit.model.profile import Stepping
from memfit.sources.env_target import GYM

PACKAGE = """
import gymnasium
gymnasium.register("Ours/Env-v0", entry_point="gymnasium.envs.classic_control:CartPoleEnv")
"""


def test_an_id_may_say_which_package_registers_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("gymnasium")
    (tmp_path / "brings_ours.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "path", [*sys.path])
    (slot,) = make(Stepping(target="brings_ours:Ours/Env-v0", kind=GYM))
    assert slot.name.endswith("CartPoleEnv")


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("Nobody/Env-v0", "write package:Nobody/Env-v0"),
        ("no_such_package:Env-v0", "Is no_such_package installed"),
    ],
)
def test_an_id_that_nobody_knows_is_said(
    monkeypatch: pytest.MonkeyPatch, target: str, told: str
) -> None:
    pytest.importorskip("gymnasium")
    monkeypatch.setattr(sys, "path", [*sys.path])
    with pytest.raises(NoEnvironment, match=told):
        make(Stepping(target=target, kind=GYM))
