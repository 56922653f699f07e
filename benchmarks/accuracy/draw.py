"""Draws training runs at random from a stated distribution: the same seed, the same runs.

Three draws are never mixed: constants are chosen on `tune`, the upper bound on `calibrate`, and a
table reports a third, whose seed is new for each table. What is drawn:

- the algorithm by the weights below, with the policy that fits the observations;
- vectors of 4 to 2,048 numbers, images of 36 to 96 pixels with 1 to 4 channels, both in a dict, and
  goals with a replay in hindsight; actions of every kind that the algorithm takes;
- networks 32 to 4,096 wide and 1 to 8 deep, convolutions (stable-baselines3's own or residual
  ones), attention over the entries of a vector, an LSTM;
- minibatches of 16 to 16,384, 1 to 64 envs (in processes of their own up to 6, in memfit's light
  workers up to 16) that hold up to 8 MiB each, wrappers, callbacks, 1 or 2 threads, replays of
  1,000 to a million rows that are filled in part, some of which store observations once.

Of five runs, one has a rough count of bytes below 512 MiB, two up to 1 GiB and two above; settings
are drawn until that holds and a rough count of arithmetic says that the run is short.
"""

from __future__ import annotations

import json
import math
import random
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.accuracy.case import Case

MIB = 1 << 20
BASE = 310 * MIB  # libraries
SMALL, MIDDLE, LARGE = (0, 512), (512, 1024), (1024, 8192)  # MiB of the rough count
CLASSES = (SMALL, LARGE, MIDDLE, LARGE, MIDDLE)
NAMES = {SMALL: "small", MIDDLE: "middle", LARGE: "large"}
QUANTILES = {"QRDQN": 120_000, "TQC": 10_000}  # floats of a sample that each is compared with each
# Multiplications of a whole run: 8 s at 5e10 a second. A step of a rollout takes as long as so
# many, and reads each weight in the time of so many.
MOST_WORK = 4e11
MOST_RESERVED = 8 * 2**30  # bytes of one array of a replay
STEP_WORK, WEIGHT_WORK = 2.5e7, 20
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
        size_class = CLASSES[i % len(CLASSES)]
        low, high = (bound * MIB for bound in size_class)
        while True:
            run, size, work = _run(draw_one)
            if low <= size < high and work < MOST_WORK:
                break
        covers = (run.algorithm, _kind(run), NAMES[size_class])
        cases.append(Case(f"draw{seed}-{i:03}", "drawn.py", (json.dumps(asdict(run)),), covers))
    return cases


def has_workers(case: Case) -> bool:
    """Whether a drawn run has processes beside its own."""
    return bool(json.loads(case.args[0])["vec_env"] != "dummy")


def _kind(run: Drawn) -> str:
    """What its network is, as the table groups runs."""
    if run.extractor:
        return run.extractor
    kinds = {"MlpLstmPolicy": "lstm", "CnnLstmPolicy": "lstm", "MultiInputLstmPolicy": "lstm"}
    kinds |= {"MlpPolicy": "mlp", "CnnPolicy": "cnn", "MultiInputPolicy": "dict"}
    return kinds[run.policy]


def _between(one: random.Random, low: float, high: float) -> int:
    """A whole number whose logarithm is evenly spread."""
    return round(low * math.pow(high / low, one.random()))


def _run(one: random.Random) -> tuple[Drawn, float, float]:
    """A run, and rough counts of its bytes and of its multiplications."""
    weights = {**ON_POLICY, **OFF_POLICY}
    algorithm = one.choices(list(weights), list(weights.values()))[0]
    kind = one.choices(["vector", "image", "dict", "goal"], [12, 6, 2, algorithm in CONTINUOUS])[0]
    actions = _actions(one, algorithm)
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
    if kind in ("vector", "goal"):
        run.env = f"{kind}:{vector},actions={actions}"
        run.policy, observed, features = "MlpPolicy", 4 * vector, vector
        if kind == "goal":
            run.policy, run.her, run.env = "MultiInputPolicy", True, f"{run.env},length=50"
        if kind == "vector" and vector <= 64 and one.random() < 0.4:
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
    level = one.randint(1, 8) if kind != "goal" and one.random() < 0.2 else 0
    if level:
        run.env += f",level={level}"
    if run.n_envs <= 6 and one.random() < 0.25:
        run.vec_env = "subproc"
    elif run.n_envs <= 16 and one.random() < 0.15:
        run.vec_env = "light"
    width, depth = run.net_arch[0], len(run.net_arch)
    own = features * width + (depth - 1) * width * width
    batch = _between(one, 16, 16384)
    if algorithm in ON_POLICY:
        size, batch, updates = _on_policy(one, run, observed, batch)
        copies, acted = 2.0, run.timesteps / run.n_envs
    else:
        size, updates = _off_policy(one, run, observed, batch, image=kind == "image")
        copies, acted = CRITICS[algorithm], updates
    if one.random() < 0.25:
        run.callbacks = one.sample(["evaluate", "checkpoint"], one.randint(1, 2))
        run.every = max(1, run.timesteps // run.n_envs // 2)
    quantiles = QUANTILES.get(algorithm, 0)
    size += BASE + 4 * own * copies * 4 + level * MIB * run.n_envs
    size += 4 * batch * (copies * 1.5 * (sample + 2 * width * depth) + quantiles)
    size += 160 * MIB * run.n_envs * (run.vec_env == "subproc")
    work = updates * batch * (copies * 3 * (own + weighs) + 50 * quantiles)
    work += acted * (STEP_WORK + WEIGHT_WORK * own + run.n_envs * weighs)
    return run, size, work


def _actions(one: random.Random, algorithm: str) -> str:
    """Actions that an algorithm takes, as scripts/envs.py names them."""
    kinds = ["discrete"]
    if algorithm in CONTINUOUS:
        kinds = ["box"]
    elif algorithm in ("PPO", "A2C"):
        kinds = ["discrete", "discrete", "box", "box", "multidiscrete", "multibinary"]
    elif algorithm == "RecurrentPPO":
        kinds = ["discrete", "discrete", "box", "box", "multidiscrete"]
    elif algorithm == "TRPO":
        kinds = ["discrete", "box"]
    elif algorithm == "MaskablePPO":
        kinds = ["discrete", "multidiscrete"]
    return f"{one.choice(kinds)}{one.randint(2, 8)}"


def _on_policy(
    one: random.Random, run: Drawn, observed: int, batch: int
) -> tuple[float, int, float]:
    """Settings of a run that collects rollouts: its bytes, samples at once, and updates."""
    n_steps = max(2, _between(one, 64, 16384) // run.n_envs)
    rollout = n_steps * run.n_envs
    batch = min(max(batch, rollout // MOST_MINIBATCHES), rollout)
    run.settings = {"n_steps": n_steps}
    if run.algorithm != "A2C":
        run.settings["batch_size"] = batch
    if run.algorithm in ("PPO", "MaskablePPO", "RecurrentPPO"):
        run.settings["n_epochs"] = 1 if rollout > 8 * batch else 2
    iterations = one.choice([2, 3])
    run.timesteps = rollout * iterations
    if run.algorithm == "A2C":
        return 1.5 * rollout * observed, rollout, iterations
    if run.algorithm == "TRPO":
        critic = 10 * rollout / batch
        return 1.5 * rollout * observed, rollout, iterations * (20 + critic)
    updates = iterations * run.settings["n_epochs"] * rollout / batch
    return 1.5 * rollout * observed, batch, updates


def _off_policy(
    one: random.Random, run: Drawn, observed: int, batch: int, *, image: bool
) -> tuple[float, int]:
    """Settings of a run with a replay, filled before it is learned from: its bytes, and updates."""
    # The kernel refuses an array that is larger than the machine, however little of it is filled.
    size = min(_between(one, 1_000, 1_000_000), MOST_RESERVED // observed)
    filled = min(_between(one, 1_000, 40_000), size)
    updates = one.randint(4, 24)
    run.settings = {
        "buffer_size": size,
        "batch_size": batch,
        "learning_starts": filled,
        "train_freq": 1,
        "gradient_steps": 1,
    }
    once = image and one.random() < 0.3
    if once:
        run.settings["optimize_memory_usage"] = True
        run.settings["replay_buffer_kwargs"] = {"handle_timeout_termination": False}
    run.timesteps = filled + updates * run.n_envs
    return (1.0 if once else 2.0) * filled * observed, updates
