"""Draws training runs at random from a stated distribution: the same seed, the same runs.

Three draws are never mixed: constants are chosen on `tune`, the upper bound on `calibrate`, and a
table reports a third, whose seed is new for each table. What is drawn:

- the algorithm by the weights below, with the policy that fits the observations;
- vectors of 4 to 2,048 numbers, images of 36 to 96 pixels with 1 to 4 channels, and both in a dict;
- networks 32 to 4,096 wide and 1 to 8 deep, convolutions (stable-baselines3's own or residual
  ones), attention over the entries of a vector, an LSTM;
- minibatches of 16 to 16,384, 1 to 64 envs (in processes of their own up to 6), wrappers,
  callbacks, 1 or 2 threads, replays of 1,000 to a million rows that are filled in part.

A size class is drawn first (a third each: below 512 MiB, up to 1 GiB, above), and settings are
drawn until a rough count of bytes lies in it and one of arithmetic says that the run is short.
"""

from __future__ import annotations

import json
import random
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.accuracy.case import Case

MIB = 1 << 20
BASE = 310 * MIB  # libraries
CLASSES = ((0, 512), (512, 1024), (1024, 8192))  # MiB of the rough count
QUANTILES = {"QRDQN": 120_000, "TQC": 10_000}  # floats of a sample that each is compared with each
MOST_FLOATS = 2e11  # multiplications of one update
MOST_MINIBATCHES = 48  # of an epoch
ON_POLICY = {"PPO": 26, "A2C": 8, "TRPO": 6, "MaskablePPO": 5, "RecurrentPPO": 7}
OFF_POLICY = {"SAC": 13, "TD3": 8, "DDPG": 4, "DQN": 12, "QRDQN": 5, "TQC": 6}
CONTINUOUS = {"SAC", "TD3", "DDPG", "TQC"}
CRITICS = {"SAC": 5, "TD3": 6, "DDPG": 4, "TQC": 5, "DQN": 2, "QRDQN": 2}  # copies of a network


@dataclass(kw_only=True)
class Drawn:
    """One run, as scripts/drawn.py takes it."""

    algorithm: str
    env: str
    policy: str
    net_arch: list[int]
    n_envs: int
    vec_env: str = "dummy"
    wrappers: list[str] = field(default_factory=list)
    callbacks: list[str] = field(default_factory=list)
    every: int = 0
    extractor: str = ""
    features: int = 0
    policy_kwargs: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    her: bool = False
    threads: int = 2
    timesteps: int = 0


def draw(seed: int, count: int) -> list[Case]:
    """So many runs of a seed, as cases."""
    cases = []
    for i in range(count):
        draw_one = random.Random(f"{seed}/{i}")
        low, high = (bound * MIB for bound in CLASSES[i % 3])
        while True:
            run, size, work = _run(draw_one)
            if low <= size < high and work < MOST_FLOATS:
                break
        covers = (run.algorithm, _kind(run), ("small", "middle", "large")[i % 3])
        cases.append(Case(f"draw{seed}-{i:03}", "drawn.py", (json.dumps(asdict(run)),), covers))
    return cases


def _kind(run: Drawn) -> str:
    if run.extractor:
        return run.extractor
    return (
        {"M": "mlp", "C": "cnn"}.get(run.policy[0], "dict") if "Lstm" not in run.policy else "lstm"
    )


def _between(one: random.Random, low: float, high: float) -> int:
    """A whole number whose logarithm is evenly spread."""
    return round(low * (high / low) ** one.random())


def _run(one: random.Random) -> tuple[Drawn, float, float]:
    """A run, a rough count of its bytes, and of the multiplications of one update."""
    weights = {**ON_POLICY, **OFF_POLICY}
    algorithm = one.choices(list(weights), list(weights.values()))[0]
    kind = one.choices(["vector", "image", "dict"], [6, 3, 1])[0]
    actions = (
        f"box{one.randint(1, 8)}" if algorithm in CONTINUOUS else f"discrete{one.randint(2, 9)}"
    )
    vector, side, channels = _between(one, 4, 2048), one.randint(36, 96), one.randint(1, 4)
    run = Drawn(
        algorithm=algorithm,
        env="",
        policy="",
        net_arch=[_between(one, 32, 4096)] * one.choices(range(1, 9), [6, 12, 6, 3, 2, 2, 1, 1])[0],
        n_envs=_between(one, 1, 64),
        threads=one.choice([1, 2, 2]),
    )
    image = side * side * channels
    features = 512.0
    sample = 0.0  # floats of activations of one sample, before the layers of net_arch
    weighs = 0.0  # multiplications of one sample there
    if kind == "vector":
        run.env = f"vector:{vector},actions={actions}"
        run.policy, observed, features = "MlpPolicy", 4 * vector, vector
        if vector <= 64 and one.random() < 0.4:
            run.extractor, run.features = "attention", 32 * one.randint(1, 4)
            features, sample = run.features, 24.0 * vector * run.features
            weighs = 24.0 * vector * run.features**2
    else:
        run.env = f"image:{side}x{side}x{channels},actions={actions}"
        run.policy, observed, sample, weighs = "CnnPolicy", image, 3.0 * image, 300.0 * image
        if kind == "dict":
            vector = min(vector, 64)
            run.env = f"dict:{side}x{side}x{channels}+{vector},actions={actions}"
            run.policy, observed = "MultiInputPolicy", image + 4 * vector
        elif one.random() < 0.3:
            run.extractor, run.features = "residual", 64 * one.randint(1, 4)
            sample, weighs, features = 12.0 * side * side, 1600.0 * side * side, run.features
        elif one.random() < 0.3:
            run.wrappers.append("stack")
            observed, sample, weighs = 4 * observed, 4 * sample, 4 * weighs
    if algorithm == "RecurrentPPO":
        run.policy = run.policy.replace("Policy", "LstmPolicy")
        run.policy_kwargs = {"lstm_hidden_size": _between(one, 32, 512)}
    if kind == "vector" and one.random() < 0.2:
        run.wrappers.append("normalize")
    elif one.random() < 0.2:
        run.wrappers.append("monitor")
    if run.n_envs <= 6 and one.random() < 0.25:
        run.vec_env = "subproc"
    width, depth = run.net_arch[0], len(run.net_arch)
    own = features * width + (depth - 1) * width * width
    batch = _between(one, 16, 16384)
    if algorithm in ON_POLICY:
        size, batch = _on_policy(one, run, observed, batch)
        copies = 2.0
    else:
        size = _off_policy(one, run, observed, batch)
        copies = CRITICS[algorithm]
    if one.random() < 0.25:
        run.callbacks = one.sample(["evaluate", "checkpoint"], one.randint(1, 2))
        run.every = max(1, run.timesteps // run.n_envs // 2)
    size += BASE + 4 * own * copies * 4
    size += 4 * batch * (copies * 1.5 * (sample + 2 * width * depth) + QUANTILES.get(algorithm, 0))
    size += 160 * MIB * run.n_envs * (run.vec_env == "subproc")
    work = batch * (copies * 3 * (own + weighs) + 50 * QUANTILES.get(algorithm, 0))
    return run, size, work


def _on_policy(one: random.Random, run: Drawn, observed: int, batch: int) -> tuple[float, int]:
    """Settings of a run that collects rollouts; their bytes, and how many samples go at once."""
    n_steps = max(2, _between(one, 64, 16384) // run.n_envs)
    rollout = n_steps * run.n_envs
    batch = min(max(batch, rollout // MOST_MINIBATCHES), rollout)
    run.settings = {"n_steps": n_steps}
    if run.algorithm != "A2C":
        run.settings["batch_size"] = batch
    if run.algorithm in ("PPO", "MaskablePPO", "RecurrentPPO"):
        run.settings["n_epochs"] = 1 if rollout > 8 * batch else 2
    run.timesteps = rollout * one.choice([2, 3])
    return 1.5 * rollout * observed, rollout if run.algorithm in ("A2C", "TRPO") else batch


def _off_policy(one: random.Random, run: Drawn, observed: int, batch: int) -> float:
    """Settings of a run with a replay that is filled before it is learned from; its bytes."""
    size = _between(one, 1_000, 1_000_000)
    filled = min(_between(one, 1_000, 40_000), size)
    updates = one.randint(4, 24)
    run.settings = {
        "buffer_size": size,
        "batch_size": batch,
        "learning_starts": filled,
        "train_freq": 1,
        "gradient_steps": 1,
    }
    run.timesteps = filled + updates * run.n_envs
    return 2.0 * filled * observed
