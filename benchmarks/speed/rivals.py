"""Buffers of other libraries, where they are installed; what does not run says why."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.speed.timing import against, in_turns

BATCH = 32
BASE = "stable-baselines3"
SHAPE = (4, 84, 84)
FOLDER = Path(__file__).parents[2] / ".rivals"


def measure(moves: Any, size: int, base: Any) -> dict[str, Any]:
    """Each rival filled alone, its samples timed in turns with the library's."""
    from benchmarks.speed.replay import resident

    sys.path.append(str(FOLDER))  # behind all else, and only for this stage
    found: dict[str, Any] = {}
    for name, (module, make) in RIVALS.items():
        try:
            importlib.import_module(module)
        except Exception as error:  # noqa: BLE001 (whatever a foreign import raises is the reason)
            found[name] = {"why_not": f"does not import: {error}".splitlines()[0][:120]}
            continue
        gc.collect()
        before = resident()
        try:
            sample, next_at = make(moves, size)
            grown = resident() - before
            wrong = cuts = 0
            for i, (_, after, _, cut) in enumerate(moves):
                if cut and i < size:
                    cuts += 1
                    wrong += not np.array_equal(np.asarray(next_at(i)).reshape(SHAPE), after[0])
            times = in_turns({BASE: lambda: base.sample(BATCH), name: sample}, 100)
            found[name] = {
                "resident": grown,
                "cuts": cuts,
                "wrong_at_cuts": wrong,
                "sample": against(times, BASE)[name],
            }
            del sample, next_at
        except Exception as error:  # noqa: BLE001 (the same)
            found[name] = {"why_not": f"{type(error).__name__}: {error}".splitlines()[0][:120]}
    return found


Made = tuple[Callable[[], Any], Callable[[int], Any]]


def cpprb(moves: Any, size: int) -> Made:
    """With next_of and stack_compress; stacks on the last axis, as it asks for."""
    from cpprb import ReplayBuffer

    buffer = ReplayBuffer(
        size,
        {
            "obs": {"shape": (84, 84, 4), "dtype": np.uint8},
            "act": {"dtype": np.int64},
            "rew": {},
            "done": {},
        },
        next_of="obs",
        stack_compress="obs",
    )
    for i, (obs, after, over, _) in enumerate(moves):
        if i == size:
            break
        last = np.moveaxis(obs[0], 0, -1)
        buffer.add(obs=last, next_obs=np.moveaxis(after[0], 0, -1), act=0, rew=0.0, done=over)
        if over:
            buffer.on_episode_end()

    def next_at(i: int) -> Any:
        return np.moveaxis(buffer._encode_sample(np.array([i]))["next_obs"][0], -1, 0)

    return lambda: buffer.sample(BATCH), next_at


def extra_buffers(moves: Any, size: int) -> Made:
    """sb3-extra-buffers: each stack compressed by itself."""
    from gymnasium import spaces
    from sb3_extra_buffers.compressed import CompressedReplayBuffer

    from benchmarks.speed.replay import ACTIONS, SPACE, filled

    assert isinstance(SPACE, spaces.Box)
    buffer: Any = CompressedReplayBuffer(
        size,
        SPACE,
        ACTIONS,
        device="cpu",
        dtypes={"elem_type": np.uint8, "runs_type": np.uint16},
        compression_method="lz4-frame",
    )
    filled(buffer, moves, size)

    def next_at(i: int) -> Any:
        return buffer.reconstruct_nextobs(i, 0)

    return lambda: buffer.sample(BATCH), next_at


def tianshou(moves: Any, size: int) -> Made:
    """With stacks of four rebuilt from frames, and next observations kept."""
    from tianshou.data import Batch, ReplayBuffer

    buffer = ReplayBuffer(size, stack_num=4, save_only_last_obs=True)
    for i, (obs, after, over, cut) in enumerate(moves):
        if i == size:
            break
        buffer.add(
            Batch(
                obs=obs[0],
                obs_next=after[0],
                act=0,
                rew=0.0,
                terminated=over and not cut,
                truncated=cut,
            )
        )
    return lambda: buffer.sample(BATCH), lambda i: buffer[np.array([i])].obs_next[0]


def torchrl(moves: Any, size: int) -> Made:
    """Plain lazy tensors: observation and next observation."""
    import torch
    from tensordict import TensorDict
    from torchrl.data import LazyTensorStorage, ReplayBuffer

    buffer = ReplayBuffer(storage=LazyTensorStorage(size), batch_size=BATCH)
    pending: list[Any] = []

    def flush() -> None:
        if pending:
            buffer.extend(torch.stack(pending))
            pending.clear()

    for i, (obs, after, over, _) in enumerate(moves):
        if i == size:
            break
        step = {
            "obs": torch.from_numpy(obs[0]),
            "next_obs": torch.from_numpy(after[0]),
            "done": torch.tensor(over),
        }
        pending.append(TensorDict(step))
        if len(pending) == 500:
            flush()
    flush()
    return buffer.sample, lambda i: buffer[i]["next_obs"].numpy()


RIVALS: dict[str, tuple[str, Callable[[Any, int], Made]]] = {
    "cpprb, next_of and stack_compress": ("cpprb", cpprb),
    "Tianshou, stack_num=4": ("tianshou", tianshou),
    "TorchRL, LazyTensorStorage": ("torchrl", torchrl),
    "sb3-extra-buffers, lz4-frame": ("sb3_extra_buffers", extra_buffers),
}
