"""Run a training script, each training only up to its first update, for simpler estimates.

Used as ``python baseline_runner.py SCRIPT ARGS``. Lines that start with ``baselines:`` carry JSON.
Nothing of memfit is used here.
"""

from __future__ import annotations

import contextlib
import json
import runpy
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import sb3_contrib
import torch as th
from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.vec_env import SubprocVecEnv, VecEnvWrapper

STEPS = 3
MB = 1_000_000


class Enough(Exception):
    """The first update has been followed; no more training is needed."""


def import_base() -> int:
    """Return what this process holds now, when only the libraries are loaded."""
    text = Path("/proc/self/smaps_rollup").read_text()
    return int(text.partition("\nRss:")[2].split()[0]) * 1024


BASE_BYTES = import_base()


def say(**values: Any) -> None:
    """Print results for the stage to read."""
    print("baselines: " + json.dumps(values), flush=True)


def space_bytes(space: spaces.Space[Any]) -> int:
    """Return the size of one observation, as its shape and type say."""
    if isinstance(space, spaces.Dict):
        return sum(space_bytes(part) for part in space.spaces.values())
    return int(np.prod(space.shape or (1,))) * np.dtype(space.dtype or np.float32).itemsize


def count_subprocesses(model: BaseAlgorithm) -> int:
    """Return how many processes the environments of a model run in."""
    env: Any = model.env
    while isinstance(env, VecEnvWrapper):
        env = env.venv
    return int(env.num_envs) if isinstance(env, SubprocVecEnv) else 0


def by_hand(model: Any) -> int:
    """Add up products as hand-made documents do."""
    observation = space_bytes(model.observation_space)
    rows = int(getattr(model, "buffer_size", None) or model.n_steps * model.n_envs)
    batch = int(getattr(model, "batch_size", None) or rows)
    parameters = sum(int(parameter.numel()) for parameter in model.policy.parameters())
    return (
        2 * rows * observation
        + parameters * 4 * 4
        + batch * observation * 3
        + 500 * MB * (1 + count_subprocesses(model))
    )


def nbytes(value: Any) -> int:
    """Return the size of an array or of a dictionary of arrays."""
    if isinstance(value, dict):
        return sum(part.nbytes for part in value.values())
    return int(getattr(value, "nbytes", 0))


def sb3_check(model: Any) -> int:
    """Return the total that the replay buffer compares with free memory, 0 without such."""
    buffer = getattr(model, "replay_buffer", None)
    if not isinstance(buffer, ReplayBuffer):
        return 0
    names = ("observations", "actions", "rewards", "dones", "next_observations")
    return sum(nbytes(getattr(buffer, name, None)) for name in names)


def totals_tracker() -> Any:
    """Make a MemTracker without its figures by module.

    As it comes, it refuses a module that is called again after a backward pass, which every
    update of Stable-Baselines3 does. Its totals need none of what it keeps by module. It is
    imported late, for its import takes 70 MiB that are no part of a training run.
    """
    from torch.distributed._tools.mem_tracker import MemTracker

    tracker: Any = MemTracker()
    tracker._pre_fw_hook = lambda module, _: tracker._track_module_params_and_buffers(module)
    tracker._post_fw_hook = tracker._pre_bw_hook = tracker._post_bw_hook = lambda *_: None
    return tracker


def shorten(model: Any) -> dict[str, int]:
    """Make the next update a few gradient steps long and return the arguments for it."""
    if hasattr(model, "replay_buffer"):
        return {"gradient_steps": STEPS, "batch_size": model.batch_size}
    if hasattr(model, "n_epochs"):
        model.n_epochs = 1
    get = model.rollout_buffer.get

    def few(batch_size: int | None = None) -> Iterator[Any]:
        return islice(get(batch_size), STEPS)

    model.rollout_buffer.get = few
    return {}


def optimizers(model: Any) -> list[th.optim.Optimizer]:
    """Find the optimizers of a model."""
    owners = [model, model.policy, getattr(model, "actor", None), getattr(model, "critic", None)]
    found = [value for owner in owners if owner is not None for value in vars(owner).values()]
    return [value for value in found if isinstance(value, th.optim.Optimizer)]


def track(model: Any, train: Any) -> None:
    """Follow one real update with torch's own tracker and stop."""
    try:
        kwargs = shorten(model)
        tracker = totals_tracker()
        tracker.track_external(model.policy, *optimizers(model))
        with tracker:
            train(**kwargs)
        peak = tracker.get_tracker_snapshot("peak")
        total = sum(device["Total"] for device in peak.values())
        say(mem_tracker_bytes=BASE_BYTES + total)
    except Exception as error:  # noqa: BLE001  whatever it cannot cope with is a result too
        say(mem_tracker_why=f"{type(error).__name__}: {error}"[:300])
    raise Enough


def follow(algorithm: Any) -> None:
    """Have the updates of an algorithm tracked; not by its models, which must stay picklable."""
    original = algorithm.train
    if getattr(original, "followed", False):
        return

    def train(self: Any, *_args: Any, **_kwargs: Any) -> None:
        track(self, original.__get__(self))

    train.followed = True  # type: ignore[attr-defined]
    algorithm.train = train


def end_early(owner: Any) -> None:
    """Let ``learn`` return after its first update."""
    original = owner.learn

    def learn(self: Any, *args: Any, **kwargs: Any) -> Any:
        with contextlib.suppress(Enough):
            return original(self, *args, **kwargs)
        return self

    owner.learn = learn


def main() -> None:
    """Put the hooks in place and run the script as if it had been started itself."""
    original = BaseAlgorithm._setup_learn

    def hooked(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        say(by_hand_bytes=by_hand(self), sb3_check_bytes=sb3_check(self), base_bytes=BASE_BYTES)
        follow(type(self))
        return result

    BaseAlgorithm._setup_learn = hooked  # type: ignore[method-assign]
    for owner in (OnPolicyAlgorithm, OffPolicyAlgorithm, sb3_contrib.MaskablePPO):
        end_early(owner)
    script = sys.argv[1]
    sys.argv = sys.argv[1:]
    sys.path[0] = str(Path(script).parent)
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
