"""MF312: the run ends before it learns.

What: `learning_starts` is at or above `total_timesteps`.

Why: the replay fills and nothing is ever learned; and since no update comes, what one needs is
never seen by a test that was meant to show that the run fits.

Bad:
    from stable_baselines3 import DQN

    model = DQN("MlpPolicy", "CartPole-v1", learning_starts=50_000)
    model.learn(10_000)

Good:
    from stable_baselines3 import DQN

    model = DQN("MlpPolicy", "CartPole-v1", learning_starts=1_000)
    model.learn(10_000)
"""

from __future__ import annotations

from collections.abc import Iterator

from memfit.checks._sb3 import models
from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, argument, number

CODE = "MF312"
SEVERITY = Severity.WARNING


def find_in_source(source: Source) -> Iterator[Spot]:
    for model in models(source):
        starts = number(source, argument(model.call, "learning_starts", 4))
        total = model.total
        if not model.on_policy and starts is not None and total is not None and starts >= total:
            yield Spot(
                model.call,
                f"learning starts at step {starts:,} and the run ends at {total:,}",
                f"learning_starts={total // 10}",
            )
