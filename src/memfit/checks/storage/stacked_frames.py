"""MF011: stacked frames are stored several times.

What: each observation is a stack of the last frames (`VecFrameStack`, `FrameStackObservation`),
and the buffer stores it whole. So a frame is stored with each stack that shows it, and in a replay
once more as part of the next observations.

Why: of a stack of four only one frame is new at each step. `memfit.dropins.WindowRolloutBuffer` and
`WindowReplayBuffer` store each frame once and put stacks together when a minibatch is gathered:
the same numbers in the same order. An episode that begins costs a complete stack, so the saving is
nearly, and not exactly, what is shown.

Bad:
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import VecFrameStack

    env = VecFrameStack(make_vec_env(make_env, n_envs=8), n_stack=4)
    model = PPO("CnnPolicy", env, n_steps=1024)

Good:
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import VecFrameStack

    env = VecFrameStack(make_vec_env(make_env, n_envs=8), n_stack=4)
    model = PPO("CnnPolicy", env, n_steps=1024, rollout_buffer_class=WindowRolloutBuffer)
"""

from __future__ import annotations

from collections.abc import Iterator

from memfit.checks._rows import named
from memfit.checks._sb3 import made_of, models
from memfit.checks._windows import (
    NEXT,
    OBSERVATIONS,
    ROLLOUT_COSTS,
    WINDOW_REPLAY,
    WINDOW_ROLLOUT,
    parts,
    stacked,
    window_replay,
    window_rollout,
)
from memfit.checks.spot import Spot
from memfit.model import Changes, Finding, Fix, Ledger, RunSpec, Severity
from memfit.model.changes import REPLAY, ROLLOUT
from memfit.syntax import Source, argument, last_name, number
from memfit.units import format_bytes

CODE = "MF011"
SEVERITY = Severity.INFO


def find_in_source(source: Source) -> Iterator[Spot]:
    for model in models(source):
        lacks = model.lacks("rollout_buffer_class") and model.lacks("replay_buffer_class")
        wrapped = [c for c in made_of(source, model.env) if last_name(c.func) == "VecFrameStack"]
        stack = number(source, argument(wrapped[0], "n_stack", 1)) if wrapped else None
        if lacks and stack and stack > 1:
            held = "rollout" if model.on_policy else "replay"
            part = f"Window{held.capitalize()}Buffer"
            yield Spot(
                model.call,
                f"the {held} stores stacks of {stack} frames whole, of which one is new",
                f"{held}_buffer_class=memfit.dropins.{part}",
            )


def find(spec: RunSpec, ledger: Ledger, limit: int) -> Iterator[Finding]:
    names = [a.name for a in (*parts(spec, OBSERVATIONS), *parts(spec, NEXT))]
    amount = named(ledger, names)
    times = stacked(spec) * len(names)
    if stacked(spec) < 2 or not amount:
        return
    yield Finding(
        code=CODE,
        severity=Severity.WARNING if 20 * amount >= ledger.peak.bytes else Severity.INFO,
        message=f"{format_bytes(amount)} of observations are stacks of {stacked(spec)} frames: "
        f"each frame is stored {times} times",
        where=", ".join(f"model.{name}" for name in names),
        bytes=amount - amount // times,
    )


def fix(spec: RunSpec, ledger: Ledger) -> Iterator[Fix]:
    if spec.on_policy:
        yield Fix(
            change="rollout_buffer_class=memfit.dropins.WindowRolloutBuffer: each frame once, the "
            "same minibatches (about: episodes begin with a whole stack)",
            ledger=window_rollout(spec, ledger, stacked(spec)),
            safe=True,
            costs=ROLLOUT_COSTS,
            changes=Changes(parts={ROLLOUT: WINDOW_ROLLOUT}),
        )
    else:
        halved = "" if parts(spec, NEXT) else " without optimize_memory_usage"
        yield Fix(
            change=f"replay_buffer_class=memfit.dropins.WindowReplayBuffer{halved}: each frame "
            "once, the same samples (about: episodes begin with a whole stack)",
            ledger=window_replay(spec, ledger, stacked(spec)),
            safe=not halved,
            changes=Changes() if halved else Changes(parts={REPLAY: WINDOW_REPLAY}),
        )
