"""Runs as stable-baselines3 makes them, with readings made up: for checks to look at."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from memfit.formulas.run_rows import run_ledger
from memfit.formulas.shared_rows import TRAINING
from memfit.libraries.sb3 import LIBRARY
from memfit.model import (
    ArraySpec,
    Ledger,
    NetworkSpec,
    Readings,
    RunSpec,
    Slope,
    UpdateSpec,
    VecEnvSpec,
    WorkerReading,
)
from memfit.units import MIB

Run = tuple[RunSpec, Ledger]

READINGS = Readings(
    stopped=300 * MIB,
    warm=310 * MIB,
    unit=64,
    base=226 * MIB,
    live=Slope(fixed=8 * MIB, per_unit=100_000),
    activations=Slope(fixed=0, per_unit=50_000),
)
POLICY = NetworkSpec(
    name="policy", parameter_bytes=MIB, gradient_bytes=MIB, optimizer="Adam", optimizer_bytes=MIB
)


def ppo(
    *, frame: int = 28_224, dtype: str = "uint8", readings: Readings = READINGS, **changes: Any
) -> Run:
    """A rollout of frames; knobs and facts may be changed."""
    itemsize = 8 if dtype == "float64" else 1
    knobs = {"n_envs": 8, "n_steps": 1024, "batch_size": 64, "total_timesteps": 1_000_000}
    observations = ArraySpec(
        name="rollout_buffer.observations",
        shape=("n_steps", "n_envs", frame),
        dtype=dtype,
        itemsize=itemsize,
        phases=TRAINING,
        copied_in="update.flatten",
    )
    rewards = replace(
        observations,
        name="rollout_buffer.rewards",
        shape=("n_steps", "n_envs"),
        dtype="float32",
        itemsize=4,
    )
    copy = replace(
        observations,
        name="rollout_buffer.flatten_copy",
        shape=("min(n_envs - 1, 1)", *observations.shape),
        kind="copies",
        phases=("update.flatten",),
        copied_in="",
    )
    arrays = (observations, rewards, copy)
    knobs |= changes.pop("knobs", {})
    micro = "micro_batch_size" in knobs
    spec = RunSpec(
        library="stable-baselines3",
        version="2.9.2",
        algorithm="PPO",
        policy="CnnPolicy",
        knobs=knobs,
        on_policy=True,
        observation=(
            ArraySpec(name="observation", shape=(frame,), dtype=dtype, itemsize=itemsize),
        ),
        arrays=arrays,
        networks=(POLICY,),
        vec_env=VecEnvSpec(kind="DummyVecEnv"),
        update=UpdateSpec(
            batch="n_steps * n_envs",
            minibatch="min(batch_size, micro_batch_size)" if micro else "batch_size",
            moment="update.minibatch",
        ),
        scale={"n_steps": 1024, "batch_size": 64},
        length="total_timesteps",
        first_update="n_steps * n_envs",
        buffer="RolloutBuffer",
    )
    return _made(spec, readings, changes)


def dqn(*, frame: int = 28_224, readings: Readings = READINGS, **changes: Any) -> Run:
    """A replay of frames, both of each step."""
    knobs = {"n_envs": 1, "batch_size": 64, "buffer_size": 100_000, "total_timesteps": 1_000_000}
    arrays = tuple(
        ArraySpec(
            name=f"replay_buffer.{name}",
            shape=("max(buffer_size // n_envs, 1)", "n_envs", frame),
            dtype="uint8",
            itemsize=1,
            phases=TRAINING,
            filled="ceil_div(total_timesteps, n_envs)",
            mapped=True,
        )
        for name in ("observations", "next_observations")
    )
    spec = RunSpec(
        library="stable-baselines3",
        version="2.9.2",
        algorithm="DQN",
        policy="CnnPolicy",
        knobs={**knobs, **changes.pop("knobs", {})},
        on_policy=False,
        observation=(ArraySpec(name="observation", shape=(frame,), dtype="uint8", itemsize=1),),
        arrays=arrays,
        networks=(POLICY,),
        vec_env=VecEnvSpec(kind="DummyVecEnv"),
        update=UpdateSpec(batch="batch_size", minibatch="batch_size", moment="update.minibatch"),
        scale={"batch_size": 64, "total_timesteps": 100_000},
        length="total_timesteps",
        buffer="ReplayBuffer",
    )
    return _made(spec, readings, changes)


def with_workers(start_method: str, each: int) -> Run:
    """The rollout of `ppo`, with subprocess workers."""
    workers = WorkerReading(started=1, each_bytes=each, shared_bytes=6 * MIB)
    readings = replace(READINGS, stopped=300 * MIB + workers.started_bytes, workers=workers)
    readings = replace(readings, warm=310 * MIB + workers.started_bytes)
    vec_env = VecEnvSpec(kind="SubprocVecEnv", start_method=start_method)
    return ppo(readings=readings, vec_env=vec_env)


def _made(spec: RunSpec, readings: Readings, changes: dict[str, Any]) -> Run:
    spec = replace(spec, **changes)
    return spec, run_ledger(spec, LIBRARY.rows(spec, readings))
