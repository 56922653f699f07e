"""Replay buffers of stacked Atari frames: bytes, wrong next observations, time of sample(32)."""

from __future__ import annotations

import gc
import itertools
from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.buffers import ReplayBuffer

from benchmarks.speed import rivals
from benchmarks.speed.atari import Transitions, frames
from benchmarks.speed.timing import against, in_turns
from memfit.dropins import WindowReplayBuffer

SPACE = spaces.Box(0, 255, (4, 84, 84), np.uint8)
ACTIONS = spaces.Discrete(6)
SMALL_ARRAYS = ("actions", "rewards", "dones", "timeouts")
BASE = "stable-baselines3"
BATCH = 32


def resident() -> int:
    """Bytes of this process that are in memory."""
    with open("/proc/self/smaps_rollup") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("Rss:"))


def nbytes(buffer: Any) -> int:
    """All arrays of a replay buffer."""
    small = sum(int(getattr(buffer, name).nbytes) for name in SMALL_ARRAYS)
    if isinstance(buffer, ReplayBuffer) and hasattr(buffer, "observation_nbytes"):
        return small + int(buffer.observation_nbytes)
    return small + int(buffer.observations.nbytes + buffer.next_observations.nbytes)


def filled(buffer: Any, moves: Transitions, size: int) -> list[tuple[int, Any]]:
    """Add so many transitions; give the next observations at cuts."""
    cuts = []
    zero = np.zeros(1)
    action = np.zeros((1, 1), np.int64)
    for i, (obs, after, over, cut) in enumerate(itertools.islice(moves, size)):
        infos = [{"TimeLimit.truncated": cut}]
        buffer.add(obs, after, action, zero, np.array([over]), infos)
        if cut:
            cuts.append((i, after[0].copy()))
    return cuts


def wrong_at_cuts(buffer: Any, cuts: list[tuple[int, Any]]) -> int:
    found = buffer.next_observations
    return sum(not np.array_equal(found[i, 0], after) for i, after in cuts)


def measure(*, small: bool) -> dict[str, Any]:
    """Everything of the table, the library's buffer first."""
    count = 6_000 if small else 102_000
    seen, starts = frames(count)
    moves = Transitions(seen, starts, 500)
    size = min(5_000 if small else 100_000, sum(1 for _ in moves))
    options: dict[str, dict[str, Any]] = {
        "memfit": {},
        "memfit, zstd": {"compression": "zstd"},
        "memfit, lz4": {"compression": "lz4"},
        "memfit, disk": {"storage": "disk"},
    }
    result: dict[str, Any] = {"transitions": size, "rows": {}}
    buffers: dict[str, Any] = {}
    for name in (BASE, *options):
        gc.collect()
        before = resident()
        if name == BASE:
            buffer: Any = ReplayBuffer(size, SPACE, ACTIONS, "cpu")
        else:
            buffer = WindowReplayBuffer(size, SPACE, ACTIONS, "cpu", **options[name])
        cuts = filled(buffer, moves, size)
        buffers[name] = buffer
        result["rows"][name] = {
            "bytes": nbytes(buffer),
            "resident": resident() - before,
            "cuts": len(cuts),
            "wrong_at_cuts": wrong_at_cuts(buffer, cuts),
        }
    kept: dict[str, Any] = {}

    def sampled(name: str) -> None:
        kept[name] = buffers[name].sample(BATCH)  # the last one is alive, as in training

    times = in_turns({n: lambda n=n: sampled(n) for n in buffers}, 50 if small else 400)
    for name, taken in against(times, BASE).items():
        result["rows"][name]["sample"] = taken
    result["wrong_samples"] = _wrong_samples(buffers)
    result["thousand_cuts"] = _thousand(seen, starts)
    for name in options:
        buffers.pop(name).close()
    result["rivals"] = rivals.measure(moves, size, buffers[BASE])
    return result


def _wrong_samples(buffers: dict[str, Any]) -> dict[str, int]:
    """Of 20 samples with the same seed, how many differ from the library's."""
    wrong = dict.fromkeys(buffers, 0)
    for seed in range(20):
        made = {}
        for name, buffer in buffers.items():
            np.random.seed(seed)
            made[name] = buffer.sample(BATCH)
        for name, batch in made.items():
            same = [
                (a is None) or bool((a == b).all()) for a, b in zip(batch, made[BASE], strict=True)
            ]
            wrong[name] += not all(same)
    del wrong[BASE]
    return wrong


def _thousand(seen: Any, starts: Any) -> dict[str, int]:
    """Many cuts: every next observation at them, compared."""
    limit = max(2, len(seen) // 1_400)
    moves = Transitions(seen, starts, limit)
    buffer: Any = WindowReplayBuffer(len(seen), SPACE, ACTIONS, "cpu")
    cuts = filled(buffer, moves, len(seen))
    found = {"limit": limit, "cuts": len(cuts), "wrong": wrong_at_cuts(buffer, cuts)}
    found["bytes"] = nbytes(buffer)
    buffer.close()
    return found
