"""Wrong use is one clear error, and never wrong data."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.buffers import ReplayBuffer

from memfit.dropins import Window, WindowArray, WindowReplayBuffer, WindowRolloutBuffer, stack
from memfit.errors import MissingExtra, Unsupported, UsageError
from tests.dropins.streams import Plan, Stream
from tests.dropins.test_replay import ACTIONS, FRAMES, STORED, fill, made

SPACE = FRAMES.space


def replay(**options: Any) -> Any:
    return WindowReplayBuffer(100, SPACE, ACTIONS, "cpu", n_envs=2, **options)


def rollout(**options: Any) -> Any:
    return WindowRolloutBuffer(20, SPACE, ACTIONS, "cpu", n_envs=2, **options)


def add(buffer: Any, obs: Any, start: float = 0.0) -> None:
    zeros = torch.zeros(2)
    buffer.add(obs, np.zeros((2, 1)), np.zeros(2), np.full(2, start), zeros, zeros)


def test_a_declared_window_that_is_none_is_refused() -> None:
    rng = np.random.default_rng(0)
    buffer = rollout(windows=[stack(SPACE.shape)])
    add(buffer, rng.integers(0, 9, (2, 4, 3, 2)))
    add(buffer, rng.integers(0, 9, (2, 4, 3, 2)), start=1.0)  # a new episode may be anything
    with pytest.raises(UsageError, match="is not the window that was declared"):
        add(buffer, rng.integers(0, 9, (2, 4, 3, 2)))
    other = replay(windows=[stack(SPACE.shape)])
    obs, after = rng.integers(0, 9, (2, 2, 4, 3, 2))
    with pytest.raises(UsageError, match="is not the window that was declared"):
        other.add(obs, after, np.zeros((2, 1)), np.zeros(2), np.zeros(2), [{}, {}])


def test_a_window_of_the_wrong_shape_is_refused() -> None:
    with pytest.raises(UsageError, match="fit the observation space"):
        rollout(windows=[Window(length=100)])
    with pytest.raises(UsageError, match="not a window"):
        Window(length=2, new=3)
    with pytest.raises(UsageError, match="equal frames"):
        stack((3, 2, 2), frames=2)
    with pytest.raises(UsageError, match="over another window"):
        rollout(windows=[Window(length=8), Window(length=8, offset=4)])
    with pytest.raises(UsageError, match="not known"):
        rollout(windows="guess")
    with pytest.raises(UsageError, match="does not have"):
        rollout(windows={"pixels": [Window(length=4)]})


@pytest.mark.parametrize("make", [rollout, replay])
def test_a_changed_space_is_refused(make: Any) -> None:
    buffer = make()
    obs = np.zeros((2, 4, 3, 3))
    step = (np.zeros((2, 1)), np.zeros(2), np.zeros(2))
    more = (obs, *step, [{}, {}]) if make is replay else (*step, torch.zeros(2), torch.zeros(2))
    with pytest.raises(UsageError, match="changed observation space"):
        buffer.add(obs, *more)


def test_a_rollout_that_is_full_takes_no_more() -> None:
    buffer = rollout()
    for _ in range(20):
        add(buffer, np.zeros((2, 4, 3, 2)))
    with pytest.raises(UsageError, match=r"reset\(\)"):
        add(buffer, np.zeros((2, 4, 3, 2)))


def test_options_that_do_not_go_together() -> None:
    for options, match in (
        ({"optimize_memory_usage": True}, "wrong next observations"),
        ({"compression": "zip"}, "not known"),
        ({"storage": "tape"}, "not known"),
        ({"storage": "disk", "compression": "lz4"}, "either"),
        ({"storage": "disk", "directory": "/nowhere/at/all"}, "exists"),
    ):
        with pytest.raises(UsageError, match=match):
            replay(**options)
    with pytest.raises(Unsupported, match="n-step"):
        WindowReplayBuffer(9, spaces.Dict({"a": SPACE}), ACTIONS, n_steps=3)


def test_a_missing_codec_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingExtra, match="pip install zstandard"):
        replay(compression="zstd")


@pytest.mark.parametrize("stored", sorted(STORED))
def test_use_after_close_is_refused(stored: str, tmp_path: Path) -> None:
    buffer = replay(**STORED[stored])
    fill((buffer,), {"": Stream(FRAMES)}, 40)
    buffer.close()
    for use in (
        lambda: buffer.sample(4),
        lambda: fill((buffer,), {"": Stream(FRAMES)}, 1),
        lambda: buffer.save(tmp_path / "b"),
    ):
        with pytest.raises(UsageError, match="was closed"):
            use()
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_an_error_not_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = replay(storage="disk")

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(UsageError, match="has no room"):
        fill((buffer,), {"": Stream(FRAMES)}, 40)


def test_a_full_disk_while_saving_keeps_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    buffer = replay()
    fill((buffer,), {"": Stream(FRAMES)}, 40)
    buffer.save(tmp_path / "b")
    before = (tmp_path / "b").read_bytes()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UsageError, match="unchanged"):
        buffer.save(tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("stored", ["memory", "zstd"])
def test_damaged_and_foreign_files_are_refused(stored: str, tmp_path: Path) -> None:
    theirs, ours = made(ReplayBuffer, SPACE, 100, 2, **STORED[stored])
    fill((theirs, ours), {"": Stream(FRAMES)}, 40)
    ours.save(tmp_path / "good")
    good = (tmp_path / "good").read_bytes()
    rng = np.random.default_rng(0)
    path = tmp_path / "bad"
    fresh = made(ReplayBuffer, SPACE, 100, 2, **STORED[stored])[1]
    for at in [0, 9, 14, 30, *rng.integers(0, len(good), 40).tolist(), len(good) - 1]:
        path.write_bytes(good[:at] + bytes([good[at] ^ 0x55]) + good[at + 1 :])
        with pytest.raises(UsageError, match=r"damaged|not a replay buffer|version"):
            fresh.load(path)
        path.write_bytes(good[:at])
        with pytest.raises(UsageError, match=r"damaged|not a replay buffer"):
            fresh.load(path)
    path.write_bytes(good + b"x")
    with pytest.raises(UsageError, match="damaged"):
        fresh.load(path)
    with pytest.raises(UsageError, match="no file"):
        fresh.load(tmp_path / "nothing")
    assert fresh.pos == 0 and not fresh.full
    fresh.load(tmp_path / "good")
    assert fresh.pos == 40


def test_a_file_of_another_buffer_is_refused(tmp_path: Path) -> None:
    buffer = replay()
    fill((buffer,), {"": Stream(FRAMES)}, 10)
    buffer.save(tmp_path / "b")
    wide = Plan(**{**vars(FRAMES), "length": 5}).space
    for other in (
        WindowReplayBuffer(90, SPACE, ACTIONS, "cpu", n_envs=2),
        WindowReplayBuffer(100, SPACE, ACTIONS, "cpu", n_envs=1),
        WindowReplayBuffer(100, wide, ACTIONS, "cpu", n_envs=2),
        replay(compression="lz4"),
        replay(n_steps=3),
    ):
        with pytest.raises(UsageError, match="same arguments"):
            other.load(tmp_path / "b")


def test_arrays_are_written_in_order() -> None:
    array = WindowArray.zeros((5, 2, 4), np.float32)
    array[0] = np.zeros((2, 4))
    with pytest.raises(UsageError, match="in order"):
        array[3] = np.zeros((2, 4))
    key: Any
    for key in ((0, 1), slice(0, 2)):
        with pytest.raises(IndexError, match="step by step"):
            array[key] = np.zeros((2, 4))
    for key in ((None,), (0, 0, np.array([1]))):
        with pytest.raises(IndexError, match=r"numpy\.asarray"):
            _ = array[key]
    with pytest.raises(UsageError, match="1 to 8 bytes"):
        WindowArray.zeros((5, 2, 4), np.complex128)


def test_a_plain_fallback_says_so(caplog: pytest.LogCaptureFixture) -> None:
    rng = np.random.default_rng(0)
    buffer = rollout()
    for _ in range(20):
        add(buffer, rng.integers(0, 255, (2, 4, 3, 2)))
    buffer.reset()
    assert [r.levelname for r in caplog.records if r.name == "memfit.dropins"] == ["WARNING"]
    assert "no window over time was found" in caplog.text
    assert "plain" in str(buffer.report()[0])


def test_importing_the_package_loads_no_torch() -> None:
    code = (
        "import sys, memfit.dropins as d; assert 'WindowReplayBuffer' in dir(d);"
        "assert not {'torch', 'stable_baselines3', 'gymnasium', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    import memfit.dropins

    assert all(getattr(memfit.dropins, name) for name in memfit.dropins.__all__)
    with pytest.raises(AttributeError, match="Nothing"):
        _ = memfit.dropins.Nothing
