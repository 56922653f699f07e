"""Programs that run while they are explained: each counts its work in a file, for its pace.

``python -m benchmarks.live.programs NAME COUNTER``
"""

from __future__ import annotations

import mmap
import multiprocessing
import os
import struct
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

MIB, GIB = 2**20, 2**30
LARGE = "20 GB, 50 busy threads"
LARGE_BYTES, LARGE_THREADS = 20 * 10**9, 50


class Counter:
    """Work that was done so far, for those outside to read."""

    def __init__(self, path: str) -> None:
        with Path(path).open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 8)
        self._count = 0

    def add(self) -> None:
        self._count += 1
        struct.pack_into("<Q", self._map, 0, self._count)


def _worker(leaks: bool, path: str) -> None:
    rng, kept = np.random.default_rng(0), []
    counter = Counter(path) if leaks else None
    frames, parent = rng.random((8, MIB)), os.getppid()
    while os.getppid() == parent:  # it ends with the program, however that ends
        frames[0] = rng.random(MIB) @ np.ones(MIB) + frames[1]
        if counter is not None:
            kept.append(np.full(MIB // 40, 1.0))
            counter.add()
        time.sleep(0.05)


def leaking_worker(path: str) -> None:
    """Four workers, of which the third keeps 4 MiB a second in `kept`."""
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_worker, args=(i == 2, path)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def jax_loop(path: str) -> None:
    """Gradient steps of a network in JAX, on batches of a data set that is held."""
    import jax
    import jax.numpy as jnp

    counter, rng = Counter(path), np.random.default_rng(0)
    data = rng.random((60_000, 256), dtype=np.float32)
    weights = [jnp.ones((256, 512)) * 0.01, jnp.ones((512, 8)) * 0.01]

    @jax.jit
    def step(weights: list[Any], batch: Any) -> list[Any]:
        def loss(weights: list[Any]) -> Any:
            return jnp.mean((jnp.tanh(batch @ weights[0]) @ weights[1]) ** 2)

        return [w - 0.01 * g for w, g in zip(weights, jax.grad(loss)(weights), strict=True)]

    while True:
        weights = step(weights, data[rng.integers(0, len(data), 512)])
        weights[0].block_until_ready()
        counter.add()


def data_loader(path: str) -> None:
    """A torch DataLoader with two workers that feeds a network."""
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    counter = Counter(path)
    images = torch.rand(20_000, 1024)
    loader = DataLoader(
        TensorDataset(images), batch_size=256, num_workers=2, persistent_workers=True
    )
    net = torch.nn.Sequential(torch.nn.Linear(1024, 512), torch.nn.ReLU(), torch.nn.Linear(512, 8))
    optimizer = torch.optim.Adam(net.parameters())
    while True:
        for (batch,) in loader:
            optimizer.zero_grad()
            net(batch).square().mean().backward()
            optimizer.step()
            counter.add()


def sb3(path: str) -> None:
    """PPO of stable-baselines3 on CartPole, of which a step of the env is counted."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback

    counter = Counter(path)

    class Count(BaseCallback):
        def _on_step(self) -> bool:
            counter.add()
            return True

    model = PPO("MlpPolicy", "CartPole-v1", n_steps=2048, device="cpu", seed=0)
    model.learn(10**9, callback=Count())


def large(path: str) -> None:
    """Arrays of 20 GB, less where the machine has not as much, and 50 busy threads."""
    from memfit.measure.kernel.limits import available

    counter, amount = Counter(path), min(LARGE_BYTES, available() - 2 * GIB)
    blocks = [np.ones(GIB // 32) for _ in range(amount // (GIB // 4))]

    def work() -> None:
        own = np.ones((200, 200))
        while True:
            sum(range(1000))
            own.dot(own)

    for _ in range(LARGE_THREADS):
        threading.Thread(target=work, daemon=True).start()
    while True:
        blocks[0][:1000] += 1
        sum(range(10_000))
        counter.add()


PROGRAMS: dict[str, Callable[[str], None]] = {
    "a leaking worker of four": leaking_worker,
    "a loop in JAX": jax_loop,
    "a DataLoader": data_loader,
    "PPO of SB3": sb3,
    LARGE: large,
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](sys.argv[2])
