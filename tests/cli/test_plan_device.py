"""`memfit plan --device cuda`: bad input, and a whole plan."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memfit.cli import main
from memfit.units import MIB

SCRIPT = """
import gymnasium
from stable_baselines3 import PPO

PPO("MlpPolicy", gymnasium.make("CartPole-v1"), n_steps=512, batch_size=512).learn(1024)
"""
LOOP = """
import torch

net = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(10_000):
    net(torch.ones(2, 4)).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--device", "cuda"], "rtx-4090"),
        (["--device", "cuda", "--on", "laptop-8gb"], "rtx-4090"),
        (["--device", "cuda", "--on", "rtx-9999"], "rtx-4090"),
        (["--device", "tpu", "--on", "rtx-4090"], "cpu, cuda"),
        (["--device", "cuda", "--on", "rtx-4090", "--probe"], "leave out --probe"),
    ],
)
def test_what_cannot_be_planned_is_refused_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    script = tmp_path / "train.py"
    script.write_text("raise SystemExit('must not run')")
    assert main(["plan", str(script), *words]) == 2
    said = capsys.readouterr()
    assert not said.out
    assert says in " ".join(said.err.split())


@pytest.mark.torch
def test_a_loop_of_its_own_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "train.py"
    script.write_text(LOOP)
    words = ["--device", "cuda", "--on", "rtx-4090", "--quick"]
    assert main(["plan", str(script), *words]) == 2
    assert "its tensors are not recorded" in " ".join(capsys.readouterr().err.split())


@pytest.mark.torch
def test_a_run_is_planned_for_a_card(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    words = ["--device", "cuda", "--on", "rtx-4090", "--format", "json"]
    assert main(["plan", str(script), *words]) == 0
    data = json.loads(capsys.readouterr().out)
    card = data["device"]
    assert card["name"] == "rtx-4090"
    assert card["fits"] is True
    allocated, reserved = card["peak_allocated_bytes"], card["peak_reserved_bytes"]
    assert 0 < allocated <= reserved <= card["total_bytes"] == reserved + 500 * MIB
    places = {c["name"]: c["place"] for c in data["components"]}
    on_card = {name for name, place in places.items() if place == "device"}
    assert {"policy.parameters", "policy.optimizer", "cuda.context", "allocator.slack"} <= on_card
    assert places["rollout_buffer.observations"] == "main process"
    assert places["cuda.host"] == "main process"
    (capacity,) = data["capacity"]
    assert capacity["peak_bytes"] == card["total_bytes"]
