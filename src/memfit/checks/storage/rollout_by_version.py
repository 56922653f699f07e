"""MF108: this version of stable-baselines3 stores images as float32 in its rollout.

What: a pin keeps stable-baselines3 below 2.7.1, and the script trains on-policy on images. Up to
2.7.0 the rollout buffer is float32 whatever the space is; from 2.7.1 on it has the space's dtype.

Why: the rollout, and the copy of it that the first minibatch makes, are four times as large: 16.9
GiB and not 4.2 for 16,384 stacks of four frames of 144 by 160 in colour.

Bad:
    # /// script
    # dependencies = ["stable-baselines3==2.7.0"]
    # ///
    from stable_baselines3 import PPO

    model = PPO("CnnPolicy", env)
    model.learn(1_000_000)

Good:
    # /// script
    # dependencies = ["stable-baselines3>=2.7.1"]
    # ///
    from stable_baselines3 import PPO

    model = PPO("CnnPolicy", env)
    model.learn(1_000_000)
"""

from __future__ import annotations

from collections.abc import Iterator

from memfit.checks._sb3 import learns, models
from memfit.checks._versions import pinned_below
from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source

CODE = "MF108"
SEVERITY = Severity.WARNING


def find_in_source(source: Source) -> Iterator[Spot]:
    images = [m for m in models(source) if m.on_policy and m.policy.startswith("Cnn")]
    # Where nothing is learned, the rollout is made and never filled.
    images = [m for m in images if m.lacks("rollout_buffer_class") and learns(source)]
    pin = pinned_below(source, "stable-baselines3", (2, 7, 1)) if images else ""
    for model in images if pin else []:
        yield Spot(
            model.call,
            f"with {pin} the rollout holds images as float32, four times their size",
            "stable-baselines3>=2.7.1",
        )
