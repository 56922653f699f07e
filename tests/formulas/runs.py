"""Runs made by hand for formulas: so small that a person can add up every byte."""

from __future__ import annotations

from memfit.formulas.run_rows import Wording
from memfit.formulas.shared_rows import BUILT, TRAINING
from memfit.model import (
    ArraySpec,
    EvidenceKind,
    NetworkSpec,
    Place,
    Readings,
    RunSpec,
    Slope,
    UpdateSpec,
    VecEnvSpec,
)

OBSERVATIONS = ArraySpec(
    name="rollout.observations",
    shape=("n_steps", "n_envs", 10),
    dtype="float32",
    itemsize=4,
    phases=TRAINING,
    copied_in="update.flatten",
    where="the rollout buffer",
)  # 8 * 4 * 10 * 4 = 1,280 bytes
REWARDS = ArraySpec(
    name="rollout.rewards",
    shape=("n_steps", "n_envs"),
    dtype="float32",
    itemsize=4,
    phases=TRAINING,
)  # 8 * 4 * 4 = 128 bytes
FLATTEN_COPY = ArraySpec(
    name="rollout.flatten_copy",
    shape=("n_steps", "n_envs", 10),
    dtype="float32",
    itemsize=4,
    kind="copies",
    phases=("update.flatten",),
)  # 1,280 bytes, and the observations' own
RING = ArraySpec(
    name="ring",
    shape=(100, 3),
    dtype="uint8",
    itemsize=1,
    phases=BUILT,
    filled=50,
    mapped=True,
)  # 150 bytes of 300
SLOTS = ArraySpec(
    name="shared_observations",
    shape=(5, "n_envs", 5),
    dtype="uint8",
    itemsize=1,
    kind="copies",
    phases=TRAINING,
    filled=2,
    mapped=True,
    place=Place.SHARED,
    evidence=EvidenceKind.ASSUMED,
    where="a person",
)  # 2 * 4 * 5 = 40 bytes of 100

ON_POLICY = RunSpec(
    library="made up",
    version="1",
    algorithm="PPO",
    policy="Small",
    knobs={"n_envs": 4, "n_steps": 8, "batch_size": 16, "total_timesteps": 1000},
    on_policy=True,
    observation=(ArraySpec(name="observation", shape=(2, 5), dtype="uint8", itemsize=1),),
    arrays=(OBSERVATIONS, REWARDS, FLATTEN_COPY, RING, SLOTS),
    networks=(
        NetworkSpec(
            name="policy",
            parameter_bytes=1000,
            gradient_bytes=900,
            optimizer="Adam",
            optimizer_bytes=2000,
        ),
    ),
    vec_env=VecEnvSpec(kind="DummyVecEnv"),
    update=UpdateSpec(batch="n_steps * n_envs", minibatch="batch_size", moment="update.minibatch"),
    scale={"n_steps": 8, "batch_size": 16},
    length="total_timesteps",
    first_update="n_steps * n_envs",
)

OFF_POLICY = RunSpec(
    library="made up",
    version="1",
    algorithm="DQN",
    policy="Small",
    knobs={"n_envs": 3, "buffer_size": 100, "batch_size": 16, "total_timesteps": 200},
    on_policy=False,
    observation=(ArraySpec(name="observation", shape=(10,), dtype="uint8", itemsize=1),),
    arrays=(
        ArraySpec(
            name="replay.observations",
            shape=("max(buffer_size // n_envs, 1)", "n_envs", 10),
            dtype="uint8",
            itemsize=1,
            phases=TRAINING,
            filled="ceil_div(total_timesteps, n_envs)",
            mapped=True,
        ),
        ArraySpec(
            name="replay.rewards",
            shape=("max(buffer_size // n_envs, 1)", "n_envs"),
            dtype="float32",
            itemsize=4,
            phases=TRAINING,
            filled="ceil_div(total_timesteps, n_envs)",
        ),
    ),
    update=UpdateSpec(batch="batch_size", minibatch="batch_size"),
    scale={"batch_size": 16, "total_timesteps": 100},
)

GRAPHS = RunSpec(
    library="made up",
    version="1",
    algorithm="",
    policy="",
    knobs={"agents": 3, "steps": 5},
    on_policy=False,
    arrays=(
        ArraySpec(
            name="flights",
            shape=("agents", "steps", 2),
            dtype="float32",
            itemsize=4,
            phases=("rollout", "update"),
            pieces="steps",
        ),
    ),
    update=UpdateSpec(
        batch="agents * steps",
        minibatch="agents * steps",
        rollout="agents",
        steps="steps",
        iterations=7,
        records_gradients=True,
        keeps_last_graph=True,
    ),
    scale={"agents": 3},
)

# Of an update's 5,000 + 300 a sample, 900 are gradients.
READINGS = Readings(
    stopped=50_000,
    warm=70_000,
    unit=16,
    base=30_000,
    retained=5_000,
    env_each=500,
    activations=Slope(fixed=100, per_unit=120),
    live=Slope(fixed=5_000, per_unit=300),
    growth={
        "rollout": Slope(fixed=2_000, per_unit=0),
        "update.flatten": Slope(fixed=9_000, per_unit=10),
        "update.minibatch": Slope(fixed=12_000, per_unit=400),
    },
)

WORDING = Wording(built="the process", network=lambda network: f"the {network.name}")
