"""PPO on pixels with whole minibatches and with micro-batches: peak, time and parameters."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

SHAPE = (4, 84, 84)
N_ENVS, N_STEPS, ROLLOUTS, EPOCHS = 4, 256, 2, 2
PLAIN = "stable-baselines3"
SIZES = {256: (128, 32), 1024: (256, 128, 32)}
# The library itself with other settings of its process. One thread sums in another order: how far
# rounding alone takes it says what may be asked of micro-batches.
OTHERWISE = {
    "one thread": {"OMP_NUM_THREADS": "1"},
    "large blocks given back": {"MALLOC_MMAP_THRESHOLD_": str(2**20)},
}


def child(batch: int, micro: int, parameters: str) -> None:
    """Train for two rollouts; say what was resident at most and what the updates took."""
    import time

    import gymnasium
    import numpy as np
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import DummyVecEnv

    from memfit.dropins import MicroBatchPPO

    class Shown(gymnasium.Env[Any, Any]):
        observation_space = gymnasium.spaces.Box(0, 255, SHAPE, np.uint8)
        action_space = gymnasium.spaces.Discrete(4)

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            super().reset(seed=seed)
            return self._seen(), {}

        def step(self, action: Any) -> Any:
            return self._seen(), float(action == 1), False, False, {}

        def _seen(self) -> Any:
            return self.np_random.integers(0, 255, SHAPE, np.uint8)

    options: dict[str, Any] = {
        "n_steps": N_STEPS,
        "batch_size": batch,
        "n_epochs": EPOCHS,
        "seed": 0,
        "device": "cpu",
    }
    env = DummyVecEnv([Shown] * N_ENVS)
    model = (
        MicroBatchPPO("CnnPolicy", env, micro_batch_size=micro, **options)
        if micro
        else PPO("CnnPolicy", env, **options)
    )
    seconds: list[float] = []
    train = model.train

    def timed() -> None:
        began = time.process_time()
        train()
        seconds.append(time.process_time() - began)

    model.train = timed  # type: ignore[method-assign]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    model.learn(ROLLOUTS * N_ENVS * N_STEPS)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    flat = torch.cat([p.detach().flatten() for p in model.policy.parameters()])
    np.save(parameters, flat.double().numpy())
    print(json.dumps({"peak_bytes": peak, "built_bytes": before, "seconds": sum(seconds)}))


def measure(*, small: bool, runs: int = 3) -> dict[str, Any]:
    """Each size of minibatch whole and in pieces, in turns, several runs of each."""
    found: dict[str, Any] = {}
    sizes = {256: (32,)} if small else SIZES
    for batch, micros in sizes.items():
        kinds: dict[str, tuple[int, dict[str, str]]] = {PLAIN: (0, {})}
        if batch == max(sizes):
            kinds |= {f"{PLAIN}, {name}": (0, told) for name, told in OTHERWISE.items()}
        kinds |= {str(micro): (micro, {}) for micro in micros}
        answers: dict[str, list[Any]] = {name: [] for name in kinds}
        with tempfile.TemporaryDirectory() as folder:
            files = {name: f"{folder}/{i}.npy" for i, name in enumerate(kinds)}
            for _ in range(1 if small else runs):
                for name, (micro, told) in kinds.items():
                    answers[name].append(_run(batch, micro, files[name], told))
            apart = {name: _apart(files[PLAIN], file) for name, file in files.items()}
        found[str(batch)] = {
            name: {
                "peak_bytes": int(statistics.median(a["peak_bytes"] for a in seen)),
                "built_bytes": int(statistics.median(a["built_bytes"] for a in seen)),
                "seconds": statistics.median(a["seconds"] for a in seen),
                "least_seconds": min(a["seconds"] for a in seen),
                "runs": len(seen),
                "apart": apart[name],
            }
            for name, seen in answers.items()
        }
    return found


def _run(batch: int, micro: int, parameters: str, told: dict[str, str]) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.speed.microbatch", str(batch), str(micro), parameters],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
        timeout=600,
        env={**os.environ, **told},
    )
    return json.loads(done.stdout.splitlines()[-1])


def _apart(one: str, other: str) -> float:
    """How far all parameters together are from the library's, relative to their size."""
    import numpy as np

    a, b = np.load(one), np.load(other)
    return float(np.linalg.norm(a - b) / np.linalg.norm(a))


if __name__ == "__main__":
    child(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
