"""The peak of PPO on stacked pixels, in a process of its own, with and without the drop-in."""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

SHAPE = (4, 84, 84)
OBSERVATION = 4 * 84 * 84
# Rollouts smaller than what an update works with, and one that is larger: envs, steps, minibatch,
# rollouts of as many epochs.
RUNS = ((4, 256, 64, 2), (4, 256, 256, 2), (8, 2048, 256, 1))


def child(kind: str, n_envs: int, n_steps: int, batch: int, times: int) -> None:
    """Train for some rollouts and say how much was resident at most."""
    import gymnasium
    import numpy as np
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack

    class Moving(gymnasium.Env[Any, Any]):
        observation_space = gymnasium.spaces.Box(0, 255, (1, 84, 84), np.uint8)
        action_space = gymnasium.spaces.Discrete(4)

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            super().reset(seed=seed)
            return self._seen(), {}

        def step(self, action: Any) -> Any:
            return self._seen(), 1.0, False, False, {}

        def _seen(self) -> Any:
            return self.np_random.integers(0, 255, (1, 84, 84), np.uint8)

    more = {}
    if kind == "memfit":
        from memfit.dropins import WindowRolloutBuffer

        more = {"rollout_buffer_class": WindowRolloutBuffer}
    env = VecFrameStack(DummyVecEnv([Moving] * n_envs), 4, channels_order="first")
    options = {"n_steps": n_steps, "batch_size": batch, "n_epochs": times, "seed": 0}
    model = PPO("CnnPolicy", env, device="cpu", **options, **more)
    model.learn(times * n_envs * n_steps)
    total = sum(float(p.double().abs().sum()) for p in model.policy.parameters())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"peak_bytes": peak, "parameters": total.hex()}))


def measure(*, small: bool) -> dict[str, Any]:
    """Peaks of each of these runs, three times in turns."""
    found: dict[str, Any] = {}
    for run in RUNS[1:2] if small else RUNS:
        n_envs, n_steps, batch, _ = run
        peaks: dict[str, list[int]] = {"stable-baselines3": [], "memfit": []}
        parameters = set()
        for _ in range(1 if small else 3):
            for kind, seen in peaks.items():
                done = subprocess.run(
                    [sys.executable, "-m", "benchmarks.speed.ppo_peak", kind, *map(str, run)],
                    capture_output=True,
                    text=True,
                    check=True,
                    cwd=Path(__file__).parents[2],
                    timeout=600,
                )
                answer = json.loads(done.stdout.splitlines()[-1])
                seen.append(answer["peak_bytes"])
                parameters.add(answer["parameters"])
        middle = {kind: statistics.median(seen) for kind, seen in peaks.items()}
        flatten = n_envs * n_steps * OBSERVATION
        found[f"{n_envs} x {n_steps:,} | {batch}"] = {
            "peaks": peaks,
            "lower_by": middle["stable-baselines3"] - middle["memfit"],
            # The old minibatch, the gathered one and its tensor are there at once.
            "asked": flatten + 3 * batch * OBSERVATION // 2,
            "same_parameters": len(parameters) == 1,
        }
    return found


if __name__ == "__main__":
    child(sys.argv[1], *map(int, sys.argv[2:]))
