"""Both trainings learn, hold what they say they hold, and leave nothing behind."""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    VecEnv,
    VecFrameStack,
    VecMonitor,
    VecTransposeImage,
    is_vecenv_wrapped,
)

from memfit.dropins import LightVecEnv, MicroBatchPPO
from memfit.errors import UsageError
from memfit.measure.kernel.proc import descendants
from memfit.systems.fighter.__main__ import arguments, main, steps_of
from memfit.systems.fighter.env import FighterEnv
from memfit.systems.fighter.fitted import BUFFERS, light_env
from memfit.systems.fighter.rom.build import CARTRIDGE
from memfit.systems.fighter.settings import EP_LENGTH, SAVE_FREQ, Game, Settings
from memfit.systems.fighter.training import ProgressCallback, check_game

SMALL = [
    "--n-steps",
    "4",
    "--batch-size",
    "4",
    "--steps",
    "16",
    "--epochs",
    "1",
    "--frames",
    "half",
]
SMALL += ["--device", "cpu", "--quiet"]
BOTH = [[], ["--as-described", "--n-envs", "1"]]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Small sums are quicker in one thread, above all where others work beside."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def pair() -> Iterator[tuple[VecEnv, VecEnv]]:
    """Two envs in light workers, and the same two in this process."""
    game = Game(frames="half", episode_steps=7)
    light = light_env(game, 2)
    plain = VecTransposeImage(VecFrameStack(DummyVecEnv([lambda: FighterEnv(game)] * 2), 4))
    yield light, plain
    light.close()
    plain.close()


def test_light_workers_play_the_same_game(pair: tuple[VecEnv, VecEnv]) -> None:
    for env in pair:
        env.seed(3)
    first, other_first = (np.asarray(env.reset()) for env in pair)
    assert np.array_equal(first, other_first)
    draw = np.random.default_rng(0)
    ended = 0
    for _ in range(20):
        actions = draw.integers(6, size=2)
        (seen, rewards, dones, infos), (plain, plain_rewards, plain_dones, plain_infos) = (
            env.step(actions) for env in pair
        )
        assert np.array_equal(np.asarray(seen), np.asarray(plain))
        assert np.array_equal(rewards, plain_rewards)
        assert np.array_equal(dones, plain_dones)
        for own, other in zip(infos, plain_infos, strict=True):
            assert own["TimeLimit.truncated"] == other["TimeLimit.truncated"]
            assert ("terminal_observation" in own) == ("terminal_observation" in other)
            if "terminal_observation" in own:
                ended += 1
                assert np.array_equal(own["terminal_observation"], other["terminal_observation"])
                assert own["episode"]["l"] == 7
    assert ended == 4


def below() -> list[int]:
    """Processes of light workers: the one that they are forks of, and they themselves."""
    commands = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in descendants(os.getpid())}
    return [pid for pid, command in commands.items() if b"memfit.dropins.workers" in command]


def test_light_workers_load_no_torch_and_are_gone_when_closed() -> None:
    env = light_env(Game(), 2)
    env.reset()
    assert is_vecenv_wrapped(env, VecMonitor) and env.env_is_wrapped(Monitor) == [False, False]
    assert [image.shape for image in env.get_images()] == [(144, 160, 3)] * 2  # type: ignore[union-attr]
    pids = below()
    assert len(pids) == 3
    for pid in pids:
        mapped = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8")
        assert "pyboy" in mapped and "torch" not in mapped
    env.close()
    env.close()
    assert below() == []


def test_a_worker_that_dies_ends_the_training(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    step = LightVecEnv.step_async

    def killing(self: LightVecEnv, actions: Any) -> None:
        os.kill(self.pids[1], signal.SIGKILL)
        step(self, actions)

    monkeypatch.setattr(LightVecEnv, "step_async", killing)
    assert main([*SMALL, "--n-envs", "2"]) == 1
    told = capsys.readouterr().err
    assert "was killed by SIGKILL while" in told and "fewer or smaller envs" in told
    assert below() == []


def test_a_worker_that_cannot_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no ROM"):
        light_env(Game(rom=tmp_path / "none.gb"), 1)


def test_an_emulator_that_crashes_is_no_game(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memfit.systems.fighter.training.FighterEnv", lambda game: os.abort())
    with pytest.raises(UsageError, match="fails with this ROM or savestate: give others"):
        check_game(Game())
    assert below() == []


def test_the_policy_is_as_large_as_measured() -> None:
    env = VecTransposeImage(VecFrameStack(DummyVecEnv([FighterEnv]), 4))
    model = PPO("CnnPolicy", env, n_steps=2, batch_size=2, device="cpu")
    assert env.observation_space.shape == (12, 144, 160)
    assert sum(p.numel() for p in model.policy.parameters()) == 7_438_503


def test_storage_changes_no_number_of_a_training() -> None:
    """The same minibatches from each frame stored once as from the library's buffer."""
    kept = []
    game = Game(frames="half", episode_steps=9)
    for storage in ("stacks", "frames"):
        env = VecTransposeImage(VecFrameStack(DummyVecEnv([lambda: FighterEnv(game)] * 2), 4))
        model = MicroBatchPPO(
            *("CnnPolicy", env),
            n_steps=16,
            batch_size=8,
            n_epochs=2,
            micro_batch_size=8,
            seed=2,
            device="cpu",
            rollout_buffer_class=BUFFERS[storage],
        )
        kept.append(learned_from(model))
    for one, two in zip(*kept, strict=True):
        assert torch.equal(one, two)


def learned_from(model: PPO) -> list[torch.Tensor]:
    model.learn(64)
    return [parameter.detach().clone() for parameter in model.policy.parameters()]


@pytest.mark.filterwarnings("ignore:You have specified a mini-batch size:UserWarning")
@pytest.mark.parametrize("kind", [PPO, MicroBatchPPO])
def test_progress_is_told_to_the_end_of_every_update(kind: type[PPO]) -> None:
    told: list[tuple[str, float]] = []
    env = DummyVecEnv([lambda: gymnasium.make("CartPole-v1")] * 2)
    options: dict[str, Any] = {} if kind is PPO else {"micro_batch_size": 2}
    model = kind("MlpPolicy", env, n_steps=4, batch_size=5, n_epochs=2, device="cpu", **options)
    progress = ProgressCallback(lambda stage, share: told.append((stage, share)))
    for _ in range(2):  # a training is several calls of learn()
        model.learn(8, callback=progress, reset_num_timesteps=False)
    rollout = [("rollout", share) for share in (0.25, 0.5, 0.75, 1.0)]
    update = [("update", share) for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
    assert told == (rollout + update) * 2


def test_iterations_stand_for_steps() -> None:
    options = arguments(["--iterations", "3", "--n-envs", "2", "--n-steps", "5"])
    assert steps_of(options) == 30
    with pytest.raises(SystemExit):
        arguments(["--iterations", "3", "--steps", "5"])
    with pytest.raises(UsageError, match="--iterations is 0: give 1 or more"):
        steps_of(arguments(["--iterations", "0"]))


def test_the_assessments_own_numbers() -> None:
    """8 minibatches an epoch; a checkpoint every 10 rollouts: `save_freq` counts vector steps."""
    settings = Settings()
    assert settings.rollout // settings.minibatch == 8
    assert SAVE_FREQ // settings.n_steps == 10
    assert settings.game.episode_steps == EP_LENGTH == settings.n_steps


@pytest.mark.parametrize("stacked", [False, True])
def test_a_reset_beside_the_model(stacked: bool) -> None:
    """The described training resets its envs before each rollout, and its model is not told.

    Without a frame stack the model goes on from an observation of before. With one, that
    observation is a view of the stack's own array, and changes under the model's hands; that an
    episode begins it does not hear either way.
    """
    env: VecEnv = DummyVecEnv([lambda: FighterEnv(Game(frames="half"))])
    env = VecTransposeImage(VecFrameStack(env, 4) if stacked else env)
    model = PPO("CnnPolicy", env, n_steps=16, batch_size=16, n_epochs=1, device="cpu")
    model.learn(16, reset_num_timesteps=False)
    before = np.array(model._last_obs)
    fresh = np.asarray(env.reset())
    assert not np.array_equal(before, fresh)
    assert np.array_equal(np.asarray(model._last_obs), fresh) is stacked
    assert not np.any(model._last_episode_starts)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--rom", "none.gb"], "there is no ROM none.gb: give the path"),
        (["--rom", "."], "cannot read the ROM"),
        (["--state", "none.state"], "cannot read the savestate"),
        (["--addresses", "none.toml"], "cannot read the addresses"),
        (["--n-envs", "0"], "--n-envs is 0: give 1 or more"),
        (["--n-steps", "-1"], "--n-steps is -1"),
        (["--n-steps", "1", "--n-envs", "1", "--batch-size", "1"], "give --n-steps 2 or more"),
        (["--batch-size", "9"], "is more than the 2 x 4 samples of a rollout: give 8 or less"),
        (["--batch-size", "0"], "--batch-size is 0"),
        (["--micro-batch", "0"], "--micro-batch is 0"),
        (["--steps", "0"], "--steps is 0"),
        (["--save-every", "0"], "--save-every is 0"),
        (["--learning-rate", "nan"], "--learning-rate is nan"),
        (["--entropy", "-1"], "--entropy is -1.0"),
        (["--seed", "-1"], "--seed is -1"),
        (["--frames", "huge"], "--frames huge is not known: give colour, grey, half"),
        (["--frame-skip", "0"], "--frame-skip is 0"),
        (["--episode-steps", "0"], "--episode-steps is 0"),
        (["--storage", "disk"], "give frames, stacks"),
        (["--device", "nowhere"], "there is no device"),
        (["--output", "/dev/null/x"], "cannot write to --output"),
        (["--as-described", "--eval-every", "1"], "never passed on"),
    ],
)
def test_what_cannot_work_is_refused(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*SMALL, *arguments]) == 2
    said = capsys.readouterr()
    assert told in said.err and said.err.count("\n") == 1
    assert not said.out


def test_a_rom_that_the_emulator_refuses_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = tmp_path / "bad.state"
    state.write_bytes(b"\x09" * 99)
    assert main([*SMALL, "--rom", str(CARTRIDGE), "--state", str(state)]) == 2
    assert "the savestate does not fit" in capsys.readouterr().err


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short name: multiprocessing keeps a socket below it."""
    with tempfile.TemporaryDirectory(prefix="memfit-") as name:
        yield Path(name)


def started(directory: Path, *options: str) -> subprocess.Popen[str]:
    temporary = directory / "tmp"
    temporary.mkdir()
    return subprocess.Popen(
        [sys.executable, "-W", "error::UserWarning", "-m", "memfit.systems.fighter", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=directory,
        env={**os.environ, "TMPDIR": str(temporary), "OMP_NUM_THREADS": "1"},
        start_new_session=True,
    )


def ended(child: subprocess.Popen[str]) -> tuple[str, str]:
    """What a run has said, which must have gone well."""
    try:
        out, err = child.communicate(timeout=300)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        raise
    assert child.returncode == 0, err
    return out, err


def left_in(directory: Path) -> list[Path]:
    """What a run left in its working and temporary directories, but for torch's own cache."""
    found = [*directory.iterdir(), *(directory / "tmp").iterdir()]
    ours = [path for path in found if not path.name.startswith(("tmp", "torchinductor"))]
    return ours + [path for path in directory.rglob("*") if path.is_file()]


def left_of(session: int) -> list[str]:
    """Processes that are still in a session."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue
        if entry.name.isdigit() and int(fields[3]) == session and fields[0] != "Z":
            found.append(entry.name)
    return found


def wait_until_gone(session: int) -> None:
    """Helpers of multiprocessing end a moment after the main process."""
    import time

    for _ in range(100):
        if not left_of(session):
            return
        time.sleep(0.1)
    pytest.fail(f"processes are left: {left_of(session)}")


@pytest.mark.timeout(400)  # torch is loaded by several processes, beside whatever else runs
@pytest.mark.slow
@pytest.mark.parametrize("options", BOTH, ids=["made to fit", "as described"])
def test_a_small_training_leaves_no_process_and_no_file(folder: Path, options: list[str]) -> None:
    child = started(folder, *SMALL, *options)
    out, err = ended(child)
    assert ": 16 steps" in out and re.search(r"peak .* beside [34] others of", out)
    assert not err
    wait_until_gone(child.pid)
    assert left_in(folder) == []


def pickled_in(model: Path) -> bytes:
    """Everything that the library pickled into a saved model."""
    with zipfile.ZipFile(model) as file:
        data = json.loads(file.read("data"))
    parts = [one[":serialized:"] for one in data.values() if isinstance(one, dict) and one]
    return b"".join(base64.b64decode(part) for part in parts)


@pytest.mark.timeout(400)
@pytest.mark.slow
def test_output_is_where_it_was_asked_for(folder: Path) -> None:
    options = ["--output", "kept", "--save-every", "4", "--eval-every", "2", "--episode-steps", "3"]
    out, err = ended(started(folder, *SMALL, *options, "--rom", str(CARTRIDGE)))
    assert err == "note: no addresses of health are known for this ROM, so every reward is 0\n"
    assert "policy written to kept/fighter.zip" in out
    assert re.search(r"iteration 2: .*\(\+0\.000 evaluated\)", out) and out.count("evaluated") == 1
    made = sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
    names = ("fighter.zip", "fighter_16_steps.zip", "fighter_8_steps.zip")
    assert made == [f"kept/{name}" for name in names]  # PPO has no replay buffer to save
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert PPO.load(folder / "kept" / "fighter.zip", device="cpu").num_timesteps == 16
    assert b"memfit" in pickled_in(folder / "kept" / "fighter_8_steps.zip")  # to go on from
    assert b"memfit" not in pickled_in(folder / "kept" / "fighter.zip")  # loads without memfit


@pytest.mark.slow
@pytest.mark.timeout(400)  # torch is loaded by several processes, beside whatever else runs
@pytest.mark.parametrize(
    "options",
    BOTH,
    ids=["made to fit", "as described"],
)
def test_ctrl_c_ends_cleanly(folder: Path, options: list[str]) -> None:
    child = started(folder, *SMALL, *options, "--steps", "1000000")
    try:
        assert child.stdout is not None
        assert "iteration 1" in child.stdout.readline()
        os.killpg(child.pid, signal.SIGINT)  # as a terminal does: to all processes
        out, err = child.communicate(timeout=300)
    except BaseException:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        raise
    assert child.returncode == 130
    assert "stopped after" in out
    assert "Traceback" not in err
    wait_until_gone(child.pid)
    assert left_in(folder) == []
