"""Runs as stable-baselines3 makes them, with readings made up: for checks to look at."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from memfit.formulas import sb3
from memfit.model import (
    ArraySpec,
    Ledger,
    NetworkSpec,
    Readings,
    RunSpec,
    Slope,
    VecEnvSpec,
    WorkerReading,
)
from memfit.units import MIB

Run = tuple[RunSpec, Ledger]

READINGS = Readings(
    stopped=300 * MIB,
    reset=301 * MIB,
    warm=310 * MIB,
    batch=64,
    base=226 * MIB,
    flattened=True,
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
    arrays = (
        ArraySpec(
            name="rollout_buffer.observations",
            shape=("n_steps", "n_envs", frame),
            dtype=dtype,
            itemsize=itemsize,
        ),
        ArraySpec(
            name="rollout_buffer.rewards", shape=("n_steps", "n_envs"), dtype="float32", itemsize=4
        ),
    )
    spec = RunSpec(
        library="stable-baselines3",
        version="2.9.2",
        algorithm="PPO",
        policy="CnnPolicy",
        knobs={**knobs, **changes.pop("knobs", {})},
        on_policy=True,
        observation=(
            ArraySpec(name="observation", shape=(frame,), dtype=dtype, itemsize=itemsize),
        ),
        arrays=arrays,
        networks=(POLICY,),
        vec_env=VecEnvSpec(kind="DummyVecEnv"),
        buffer="RolloutBuffer",
    )
    return _made(spec, readings, changes)


def dqn(*, frame: int = 28_224, readings: Readings = READINGS, **changes: Any) -> Run:
    """A replay of frames, both of each step."""
    knobs = {"n_envs": 1, "batch_size": 64, "buffer_size": 100_000, "total_timesteps": 1_000_000}
    arrays = tuple(
        ArraySpec(
            name=f"replay_buffer.{name}", shape=("rows", "n_envs", frame), dtype="uint8", itemsize=1
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
        buffer="ReplayBuffer",
    )
    return _made(spec, replace(readings, flattened=False), changes)


def with_workers(start_method: str, each: int) -> Run:
    """The rollout of `ppo`, with subprocess workers."""
    workers = WorkerReading(started=1, each_bytes=each, shared_bytes=6 * MIB)
    readings = replace(READINGS, stopped=300 * MIB + workers.started_bytes, workers=workers)
    readings = replace(readings, warm=310 * MIB + workers.started_bytes)
    vec_env = VecEnvSpec(kind="SubprocVecEnv", start_method=start_method)
    return ppo(readings=readings, vec_env=vec_env)


def _made(spec: RunSpec, readings: Readings, changes: dict[str, Any]) -> Run:
    spec = replace(spec, **changes)
    return spec, sb3.ledger(spec, readings)
