"""`memfit optimize` at the command line: what is refused, and that nothing is left behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memfit.cli import main

LOOP = """
import numpy, torch
batch_size = 32
network = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)

class Env:
    def reset(self):
        return numpy.random.rand(8)
    def step(self, action):
        return numpy.random.rand(8), 0.0, False, {}

env = Env()
env.reset()
for _ in range(100_000):
    seen = numpy.stack([env.step(0)[0] for _ in range(batch_size)])
    loss = network(torch.as_tensor(seen, dtype=torch.float32)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "say what to optimize"),
        (("-m", "x", "train.py"), "two targets"),
        (("no.py",), "there is no file"),
        (("train.py", "--goal", "0"), "--goal 0"),
        (("train.py", "--goal", "n_envs"), "n_envs"),
        (("train.py", "--limit", "0"), "leaves no room"),
        (("train.py", "--timeout", "0"), "leaves no time"),
        (("train.py", "--select", "MF9"), "no check has a code"),
        (("train.py", "--set", "n_envs"), "--set n_envs"),
        (("train.py", "--write", "train.py"), "does not edit"),
        (("train.py", "--write", "no/copy.py"), "its directory does not exist"),
    ],
)
def test_bad_usage_ends_before_anything_runs(
    words: tuple[str, ...],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("raise SystemExit('it was run')\n")
    assert main(["optimize", *words]) == 2
    shown = capsys.readouterr()
    assert said in shown.err and not shown.out
    assert [file.name for file in tmp_path.iterdir()] == ["train.py"]


@pytest.mark.torch
def test_a_loop_without_fixes_is_measured_and_keeps_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(LOOP)
    code = main(["optimize", "train.py", "--goal", "1KiB", "--format", "json", "--quiet"])
    found = json.loads(capsys.readouterr().out)
    assert code == 3 and found["goal_reached"] is False
    assert found["kind"] == "optimize" and found["schema"] == 1
    assert found["peak_bytes"] > 2**20 and found["updates"] >= 12
    assert (tmp_path / "train.py").read_text() == LOOP
    assert [file.name for file in tmp_path.iterdir()] == ["train.py"]
