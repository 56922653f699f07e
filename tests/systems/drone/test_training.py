"""Both trainings run, learn by the same gradients, and refuse what cannot work."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import torch

import memfit
from memfit.errors import UsageError
from memfit.systems.drone.__main__ import main
from memfit.systems.drone.described import Described
from memfit.systems.drone.fitted import Fitted
from memfit.systems.drone.networks import Networks
from memfit.systems.drone.settings import EPISODE, Settings

SMALL = ["--agents", "3", "--history", "20", "--iterations", "2", "--device", "cpu", "--quiet"]


def test_both_trainings_run_and_change_their_networks() -> None:
    for training, storage in ((Fitted, "int16"), (Described, "float32")):
        made = training(Settings(agents=4, history=20, iterations=2, storage=storage))
        before = {name: p.clone() for name, p in made.networks.named_parameters()}
        results = list(made.train())
        assert [r.number for r in results] == [1, 2]
        changed = [
            name for name, p in made.networks.named_parameters() if (p != before[name]).any()
        ]
        assert len(changed) == len(before)


def test_the_first_fix_trains_the_same() -> None:
    """The window slides within the observations, and no number of the training changes."""
    told = []
    for first_fix in (False, True):
        made = Described(
            Settings(agents=2, history=20, iterations=1, storage="float32", first_fix=first_fix)
        )
        losses = [(r.mean_return, r.rl_loss, r.memory_loss) for r in made.train()]
        told.append((losses, made.env.observations))
        assert (made.env.imu_history is None) is first_fix
    assert told[0][0] == told[1][0]
    assert torch.equal(told[0][1], told[1][1])


def test_the_specs_before_and_after_the_first_fix_differ_by_its_row() -> None:
    specs = Path(memfit.__file__).parent / "specs"
    before, after = (
        tomllib.loads((specs / f"{name}.toml").read_text(encoding="utf-8"))
        for name in ("drone", "drone-first-fix")
    )
    before["array"] = [row for row in before["array"] if row["name"] != "env.imu_history"]
    assert {**after, "name": "drone"} == before


def test_the_networks_are_as_large_as_described() -> None:
    assert sum(p.numel() for p in Networks(300, 1e-3).parameters()) == 112_707


def test_one_pass_gives_the_gradients_of_two() -> None:
    """The sum's gradient is what the described training's two backward passes add up to."""
    made = Fitted(Settings(agents=4, history=20, storage="float32"))
    made.rollout()
    who = torch.arange(4).repeat(5)
    batch = made.timeline.gather(who, torch.arange(20) % EPISODE)
    networks = made.networks
    from memfit.systems.drone import ppo

    def losses() -> tuple[torch.Tensor, torch.Tensor]:
        code = networks.memory.encode(batch.windows)
        actor, values = networks.head(code, batch.targets)
        rl = ppo.rl_loss(
            actor, values, batch.actions, batch.log_probs, batch.advantages, batch.returns
        )
        return ppo.memory_loss(networks.memory.decode(code), batch.windows), rl

    memory, rl = losses()
    networks.zero_grad()
    memory.backward(retain_graph=True)
    rl.backward()
    twice = {n: p.grad.clone() for n, p in networks.named_parameters() if p.grad is not None}
    memory, rl = losses()
    networks.zero_grad()
    (memory + rl).backward()
    for name, parameter in networks.named_parameters():
        torch.testing.assert_close(parameter.grad, twice[name])


def test_paths_are_kept_only_where_someone_looks() -> None:
    assert Fitted(Settings(agents=4, history=20)).paths.numel() == 0
    made = Fitted(Settings(agents=4, history=20, paths=2))
    made.rollout()
    assert made.paths.shape == (2, EPISODE, 3)
    assert made.paths.abs().sum() > 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--agents", "0"], "--agents is 0: give 1 or more"),
        (["--iterations", "0"], "--iterations is 0"),
        (["--history", "9"], "one step alone brings 10 samples: give 10 or more"),
        (["--every", "3"], "does not divide"),
        (["--act-every", "7"], "does not divide"),
        (["--max-minibatches", "0"], "give 1 or more"),
        (["--storage", "float16"], "readings: give int16 or float32"),
        (["--storage", "text"], "is not known: give int16 or float32"),
        (["--as-described", "--storage", "int16"], "leave out --storage"),
        (["--first-fix"], "add --as-described"),
        (["--device", "nowhere"], "there is no device"),
        (["--plot", "flights.txt"], "ending of a picture"),
        (["--plot", "missing/flights.png"], "make it first"),
    ],
)
def test_what_cannot_work_is_refused(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*SMALL, *arguments]) == 2
    said = capsys.readouterr()
    assert told in said.err and said.err.count("\n") == 1
    assert not said.out


def test_numbers_that_are_none_are_refused() -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--agents", "many"])
    assert stop.value.code == 2


def test_a_run_says_what_it_took_and_draws_a_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "flights.png"
    assert main([*SMALL, "--plot", str(picture)]) == 0
    said = capsys.readouterr().out
    assert "iteration 2: mean return" in said and "peak " in said
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_work_is_bounded_and_memory_is_not_touched_by_it() -> None:
    made = Fitted(Settings(agents=50, history=20, minibatch=100, max_minibatches=3))
    made.rollout()
    assert made.update()[2] == 3


@pytest.mark.slow
def test_ctrl_c_ends_cleanly(tmp_path: Path) -> None:
    import signal

    command = [
        sys.executable,
        "-m",
        "memfit.systems.drone",
        "--agents",
        "20",
        "--history",
        "20",
        "--iterations",
        "9999",
    ]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        child.stdout.readline()  # the first iteration
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    finally:
        child.kill()
    assert child.returncode == 130
    assert "stopped after" in out
    assert "Traceback" not in err


def test_a_described_training_has_one_storage() -> None:
    with pytest.raises(UsageError):
        Described(Settings(agents=1, storage="int16"))
